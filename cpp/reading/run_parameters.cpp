// Parameters of force elements, which may differ between runs.
#include <algorithm>
#include <numeric>
#include <optional>
#include <set>

#include "../model/text.hpp"
#include "elements.hpp"

namespace sarrus {

namespace {
[[noreturn]] void refuse_runs(std::size_t runs, std::size_t got) {
  throw ShapeError("values that differ from run to run must have one item for each of the " + std::to_string(runs) +
                   " runs; got " + std::to_string(got));
}
}  // namespace

std::vector<std::size_t> RunParameters::rows_of(std::size_t items) const {
  std::vector<std::size_t> all(rows_ && items != 1 ? rows_->size() : items);
  if (rows_ && items != 1) {
    if (items != runs_) refuse_runs(runs_, items);
    std::copy(rows_->begin(), rows_->end(), all.begin());
  } else {
    std::iota(all.begin(), all.end(), std::size_t{0});
  }
  return all;
}

int RunParameters::add(const model::NumberArray& x, std::size_t axes) {
  Column column{{}, axes ? x.shape.back() : 1, x.numbers};
  if (x.shape.size() > axes) column.runs = x.shape[0];
  if (rows_ && column.runs && *column.runs != 1) {
    if (*column.runs != runs_) refuse_runs(runs_, *column.runs);
    std::vector<double> numbers;
    for (const std::int64_t row : *rows_) {
      const auto begin = x.numbers.begin() + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(row) * column.size);
      numbers.insert(numbers.end(), begin, begin + static_cast<std::ptrdiff_t>(column.size));
    }
    column.runs = rows_->size(), column.numbers = std::move(numbers);
  }
  const int begin = width_;
  width_ += static_cast<int>(column.size);
  columns_.push_back(std::move(column));
  return begin;
}

int RunParameters::add_selected(const model::NumberArray& x) {
  columns_.push_back({x.shape[0], 1, x.numbers});
  return width_++;
}

void RunParameters::name(std::string name, int begin) {
  const auto same = std::count_if(names_.begin(), names_.end(),
                                  [&](const Name& each) { return each.name.substr(0, each.name.find(" #")) == name; });
  if (same) name += " #" + std::to_string(same + 1);
  names_.push_back({std::move(name), begin, width_});
}

model::NumberArray RunParameters::all() const {
  std::set<std::size_t> counts;
  for (const Column& column : columns_)
    if (column.runs) counts.insert(*column.runs);
  std::set<std::size_t> several = counts;
  several.erase(1);
  if (several.size() > 1) {
    std::vector<std::string> shapes;
    for (const std::size_t runs : counts) shapes.push_back(shape_text({runs}));
    throw ShapeError("parameters that differ from run to run must have the same number of runs; got shapes [" + joined(shapes) +
                     "]");
  }
  const std::size_t runs = several.empty() ? 1 : *several.begin(), width = static_cast<std::size_t>(width_);
  model::NumberArray all{{width}, std::vector<double>(runs * width)};
  if (!counts.empty()) all.shape = {runs, width};
  std::size_t at = 0;
  for (const Column& column : columns_) {
    for (std::size_t i = 0; i < runs; ++i) {
      const std::size_t row = column.runs && *column.runs != 1 ? i : 0;
      std::copy_n(column.numbers.begin() + static_cast<std::ptrdiff_t>(row * column.size), column.size,
                  all.numbers.begin() + static_cast<std::ptrdiff_t>(i * width + at));
    }
    at += column.size;
  }
  return all;
}

}  // namespace sarrus
