// Argument of a force element as the caller passes it: none, a truth value, numbers, a text, a function of time, a list of these, or named arguments.
// Numbers of shape (runs,) contain one number for each run.
#pragma once

#include <functional>
#include <initializer_list>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "../constraints/law.hpp"
#include "../model/values.hpp"

namespace sarrus {

class Scene;
struct Element;
struct TaskControl;

/// Error: an argument has a wrong shape.
struct ShapeError : std::invalid_argument {
  using std::invalid_argument::invalid_argument;
};

class Argument {
 public:
  using Numbers = model::NumberArray;
  using List = std::vector<Argument>;
  using Named = std::vector<std::pair<std::string, Argument>>;
  using Elements = std::shared_ptr<const std::vector<Element>>;
  /// Function of the caller, whose values are inputs of a call.
  struct Function {};
  /// Object of the caller of any other type.
  struct Other {};

  Argument() = default;
  Argument(bool x) : content_(x) {}
  Argument(double x) : content_(Numbers{{}, {x}}) {}
  Argument(int x) : Argument(static_cast<double>(x)) {}
  Argument(const char* x) : content_(std::string(x)) {}
  Argument(std::string x) : content_(std::move(x)) {}
  Argument(const std::vector<double>& x) : content_(Numbers{{x.size()}, x}) {}
  Argument(Numbers x) : content_(std::move(x)) {}
  Argument(Law x) : content_(std::move(x)) {}
  /// Create a list; a list of numbers, or of arrays of one shape, is converted to an array.
  Argument(List items);
  Argument(std::initializer_list<Argument> items) : Argument(List(items)) {}
  Argument(Named named) : content_(std::move(named)) {}
  Argument(Elements elements) : content_(std::move(elements)) {}
  Argument(std::shared_ptr<const Scene> scene) : content_(std::move(scene)) {}
  Argument(std::shared_ptr<const TaskControl> law) : content_(std::move(law)) {}
  Argument(Function x) : content_(x) {}
  Argument(Other x) : content_(x) {}

  bool is_none() const { return is<std::monostate>(); }
  template <class X> bool is() const { return std::holds_alternative<X>(content_); }
  template <class X> const X* get() const { return std::get_if<X>(&content_); }
  /// Return the items of a list, or the entries of an array along its first axis; empty for anything else.
  List items() const;
  /// Return true for a list, including a list of numbers; false for an array of numbers.
  bool is_list() const { return is_list_; }
  bool is_sequence() const { return is<List>() || (is<Numbers>() && !get<Numbers>()->shape.empty()); }

  Argument listed() && { return is_list_ = true, std::move(*this); }
  /// Return the argument with a function that returns its text for messages, as the caller wrote it.
  Argument written(std::function<std::string()> text) && { return written_ = std::move(text), std::move(*this); }
  /// Return the text of the argument for messages.
  std::string shown() const;

 private:
  std::variant<std::monostate, bool, Numbers, std::string, Law, List, Named, Elements, std::shared_ptr<const Scene>,
               std::shared_ptr<const TaskControl>, Function, Other>
      content_;
  bool is_list_ = false;
  std::function<std::string()> written_;
};

/// Force element: its kind (the name of a struct in elements/set.hpp) and its named arguments. `name` is used in messages.
struct Element {
  std::string kind;
  Argument::Named arguments;
  std::string name = kind;
};

}  // namespace sarrus
