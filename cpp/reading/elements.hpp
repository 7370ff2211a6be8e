// Creation of force elements from their kind and named arguments, for C++ and Python. Arguments are names of joints and frames, functions of time,
// and numbers, which may differ between runs.
//
//   kind       a struct of elements/set.hpp; its fields determine the arguments, unless elements.cpp has an entry for the kind
//   arguments  are checked here; errors contain the name of the argument, its value and the expected value
//   results    elements of a ForceElementList, whose numbers are stored in rows of parameters, one row for each run
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

/// The mechanism, or variants, on which elements act. `positions` returns the Positions of the mechanism, or of the base of variants. `type` returns
/// the type of a joint, by its index in the description.
struct ElementModel {
  StateFunctions functions;
  std::function<const Positions&()> positions;
  std::function<const model::JointType&(int)> type;
  RowsOfState rows;
};

/// Data of runs on which elements depend, in addition to the mechanism.
struct ElementRun {
  std::vector<double> effort_limits;  // limits of the sum of all efforts along each velocity; empty: no limits
  std::optional<model::NumberArray> start;  // (nq,) or (runs, nq) configurations for effective inertias; none: the neutral one
  std::optional<std::vector<std::int64_t>> rows;  // indices of the runs of this mechanism among all runs; none: all runs
  std::size_t runs = 0;  // number of all runs; only used with `rows`
  bool rigid = false;  // true: method "contact", whose steps treat end stops as rows instead of forces
};

/// Parameters of force elements: a row for each run.
class RunParameters {
 public:
  /// A named slice of a row.
  struct Name {
    std::string name;
    int begin, end;
  };

  explicit RunParameters(const ElementRun& run = {}) : rows_(run.rows), runs_(run.runs) {}

  /// Add numbers that have `axes` axes (0 or 1) for one run, and optionally a preceding axis of runs. Returns the index of the first number in the
  /// row.
  int add(const model::NumberArray& numbers, std::size_t axes);
  /// Add the index of a function of time for each of this mechanism's runs.
  int add_selected(const model::NumberArray& indices);
  /// Name the numbers from index `begin` to the end of the row. If the name exists already, a number is appended to it.
  void name(std::string name, int begin);
  /// Return the indices of the items that belong to this mechanism's runs, in a sequence with one item for each run or a single item.
  std::vector<std::size_t> rows_of(std::size_t items) const;

  int width() const { return width_; }
  const std::vector<Name>& names() const { return names_; }
  /// Return the row (width,), or rows (runs, width) if numbers differ between runs. Raises ShapeError if numbers have different numbers of runs.
  model::NumberArray all() const;

 private:
  struct Column {
    std::optional<std::size_t> runs;  // none: the numbers have no axis of runs
    std::size_t size;
    std::vector<double> numbers;
  };

  std::optional<std::vector<std::int64_t>> rows_;
  std::size_t runs_;
  std::vector<Column> columns_;
  std::vector<Name> names_;
  int width_ = 0;
};

/// Add elements to a list, in the order of their kinds, and their numbers to the parameters. Raises ModelError, NameNotFoundError or ShapeError if an
/// argument is wrong, or if elements do not fit the mechanism or each other.
void add_elements(const ElementModel& model, const std::vector<Element>& elements, const ElementRun& run, ForceElementList& list,
                  RunParameters& parameters);

/// Return the position of a kind in the order of evaluation, in which add_elements() adds elements. Raises ModelError if there is no such kind.
int order_of_kind(const std::string& kind);

/// Return the arguments of a kind with their default values; required arguments have the value Argument::Other. Raises ModelError if there is no such
/// kind.
Argument::Named element_arguments(const std::string& kind);

/// Force elements of runs, with their parameters. Usage: plan.force_elements = acting.all().
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
