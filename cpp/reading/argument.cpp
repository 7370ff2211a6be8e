#include "argument.hpp"

#include <algorithm>

#include "../model/text.hpp"

namespace sarrus {

namespace {

/// Return the part of numbers at an index of their first axis.
model::NumberArray part(const model::NumberArray& x, std::size_t index) {
  const std::size_t size = x.numbers.size() / x.shape[0];
  const auto begin = x.numbers.begin() + static_cast<std::ptrdiff_t>(index * size);
  return {{x.shape.begin() + 1, x.shape.end()}, {begin, begin + static_cast<std::ptrdiff_t>(size)}};
}

}  // namespace

Argument::Argument(List items) : is_list_(true) {
  const Numbers* first = items.empty() ? nullptr : items[0].get<Numbers>();
  const bool even = first && std::all_of(items.begin(), items.end(), [&](const Argument& item) {
                      return item.is<Numbers>() && item.get<Numbers>()->shape == first->shape;
                    });
  if (!even) {
    if (items.empty())
      content_ = Numbers{{0}, {}};
    else
      content_ = std::move(items);
    return;
  }
  Numbers all{{items.size()}, {}};
  all.shape.insert(all.shape.end(), first->shape.begin(), first->shape.end());
  for (const Argument& item : items)
    all.numbers.insert(all.numbers.end(), item.get<Numbers>()->numbers.begin(), item.get<Numbers>()->numbers.end());
  content_ = std::move(all);
}

Argument::List Argument::items() const {
  if (const List* list = get<List>()) return *list;
  List all;
  if (const Numbers* x = get<Numbers>(); x && !x->shape.empty())
    for (std::size_t k = 0; k < x->shape[0]; ++k) all.emplace_back(part(*x, k));
  return all;
}

std::string Argument::shown() const {
  if (written_) return written_();
  if (is_none()) return "None";
  if (const bool* x = get<bool>()) return *x ? "True" : "False";
  if (const std::string* x = get<std::string>()) return quoted(*x);
  if (const Numbers* x = get<Numbers>(); x && x->shape.empty()) return shortest(x->numbers[0]);
  std::vector<std::string> parts;
  if (is_sequence()) {
    for (const Argument& item : items()) parts.push_back(item.shown());
    return "[" + joined(parts) + "]";
  }
  if (const Named* named = get<Named>()) {
    for (const auto& [key, x] : *named) parts.push_back(quoted(key) + ": " + x.shown());
    return "{" + joined(parts) + "}";
  }
  return is<Law>() ? "a function of time" : "an object";
}

}  // namespace sarrus
