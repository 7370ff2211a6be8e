// Force elements by kind and named arguments, in C++ and Python: joints and frames by their names, functions of time, and numbers, which may differ
// between runs.
//
//   kind       struct of elements/set.hpp; its fields determine the arguments, unless elements.cpp has an entry for the kind
//   arguments  checked here; errors name the argument, what it is and what it should be
//   results    elements of a ForceElementList, whose numbers are in rows of parameters, one row for each run
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "../elements/list.hpp"
#include "../model/joint_type.hpp"
#include "../position/positions.hpp"
#include "argument.hpp"

namespace sarrus {

/// Mechanism, or variants, on which elements act. `positions` returns those of the mechanism, or of the base of variants; `type` returns that of a joint,
/// by its index in the description.
struct ElementModel {
  StateFunctions functions;
  std::function<const Positions&()> positions;
  std::function<const model::JointType&(int)> type;
  RowsOfState rows;
};

/// Data of runs on which elements depend, in addition to the mechanism.
struct ElementRun {
  std::vector<double> effort_limits;  // of the sum of all efforts along each velocity, or empty
  std::optional<model::NumberArray> start;  // (nq,) or (runs, nq): configurations of effective inertias; none: the neutral one
  std::optional<std::vector<std::int64_t>> rows;  // of all runs, those of this mechanism; none: all
  std::size_t runs = 0;  // number of all runs, if there are `rows`
  bool rigid = false;  // end stops are constraints of the steps
};

/// Numbers of force elements: a row for each run.
class RunParameters {
 public:
  /// Slice of a row with a name.
  struct Name {
    std::string name;
    int begin, end;
  };

  explicit RunParameters(const ElementRun& run = {}) : rows_(run.rows), runs_(run.runs) {}

  /// Add numbers with `axes` axes for one run, 0 or 1, and optionally an axis of runs before it. Returns the index of the first.
  int add(const model::NumberArray& numbers, std::size_t axes);
  /// Add the index of a function of time for each of this mechanism's runs.
  int add_selected(const model::NumberArray& indices);
  /// Name the numbers from an index to the end; a number is appended to a name that exists.
  void name(std::string name, int begin);
  /// Return the indices of the items of this mechanism's runs in a sequence with an item for each run, or a single item.
  std::vector<std::size_t> rows_of(std::size_t items) const;

  int width() const { return width_; }
  const std::vector<Name>& names() const { return names_; }
  /// Return the row (width,), or rows (runs, width) if a number differs between runs. ShapeError: their numbers of runs differ.
  model::NumberArray all() const;

 private:
  struct Column {
    std::optional<std::size_t> runs;  // none: without an axis of runs
    std::size_t size;
    std::vector<double> numbers;
  };

  std::optional<std::vector<std::int64_t>> rows_;
  std::size_t runs_;
  std::vector<Column> columns_;
  std::vector<Name> names_;
  int width_ = 0;
};

/// Add elements to a list, in the order of their kinds, and their numbers to the parameters. ModelError, NameNotFoundError, ShapeError: an argument is
/// wrong, or elements do not fit the mechanism or each other.
void add_elements(const ElementModel& model, const std::vector<Element>& elements, const ElementRun& run, ForceElementList& list,
                  RunParameters& parameters);

/// Return the place of a kind in the order of evaluation, in which add_elements() adds. ModelError: there is no such kind.
int order_of_kind(const std::string& kind);

/// Return the arguments of a kind, with their default values; an Argument::Other for required arguments. ModelError: there is no such kind.
Argument::Named element_arguments(const std::string& kind);

/// Force elements of runs, with their numbers: plan.force_elements = acting.all().
class ActingElements {
 public:
  ActingElements(const ElementModel& model, const std::vector<Element>& elements, const ElementRun& run = {})
      : list_(model.functions.tree().nv + model.functions.tree().loop_nv), parameters_(run) {
    add_elements(model, elements, run, list_, parameters_);
    list_.limit_efforts(run.effort_limits);
    numbers_ = parameters_.all();
  }
  ForceElements all() const {
    ForceElements elements = list_.all();
    elements.parameters = parameters_.width();
    return elements;
  }
  const RunParameters& parameters() const { return parameters_; }
  const model::NumberArray& numbers() const { return numbers_; }

 private:
  ForceElementList list_;
  RunParameters parameters_;
  model::NumberArray numbers_;
};

}  // namespace sarrus
