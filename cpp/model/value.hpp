// Value of a document: null, a truth value, a number, a text, a list of values, or an object of named values in their order. JSON is parsed to such
// values and written from them. Functions that check numbers accept them, so that error messages can show the original input.
#pragma once

#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "../spatial/vector.hpp"

namespace sarrus {

class Value {
 public:
  enum class Sort { null, truth, integer, number, text, list, object };
  using List = std::vector<Value>;
  using Member = std::pair<std::string, Value>;
  using Object = std::vector<Member>;

  Value() = default;
  Value(bool x) : sort_(Sort::truth), number_(x) {}
  Value(int x) : sort_(Sort::integer), number_(x), text_(std::to_string(x)) {}
  Value(double x) : sort_(Sort::number), number_(x) {}
  Value(const char* x) : sort_(Sort::text), text_(x) {}
  Value(std::string x) : sort_(Sort::text), text_(std::move(x)) {}
  Value(List x) : sort_(Sort::list), list_(std::move(x)) {}
  Value(std::initializer_list<Value> x) : Value(List(x)) {}
  Value(Object x) : sort_(Sort::object), object_(std::move(x)) {}
  Value(const std::vector<double>& x) : sort_(Sort::list), list_(x.begin(), x.end()) {}
  Value(const Vec3<double>& x) : Value{x(0), x(1), x(2)} {}
  Value(const Mat3<double>& x);  // row-major
  static Value integer(std::string digits, double x);
  /// Return the same value with another text for messages: the one that the caller wrote.
  Value written(std::string text) && { return shown_ = std::move(text), std::move(*this); }

  Sort sort() const { return sort_; }
  bool is(Sort sort) const { return sort_ == sort; }
  bool is_null() const { return sort_ == Sort::null; }
  bool is_text() const { return sort_ == Sort::text; }
  bool is_list() const { return sort_ == Sort::list; }
  bool is_object() const { return sort_ == Sort::object; }
  bool is_number() const { return sort_ == Sort::number || sort_ == Sort::integer; }

  double number() const { return number_; }  // 0 or 1 for truth values
  const std::string& text() const { return text_; }  // the digits of an integer
  const List& list() const { return list_; }
  const Object& object() const { return object_; }
  const std::string& shown() const { return shown_; }
  List& list() { return list_; }
  Object& object() { return object_; }
  const Value* find(const std::string& key) const { return find(object_, key); }  // member of an object; null if there is none
  static const Value* find(const Object& object, const std::string& key);

  bool operator==(const Value& other) const;
  bool operator!=(const Value& other) const { return !(*this == other); }
  std::size_t hash() const;  // equal for equal values

 private:
  Sort sort_ = Sort::null;
  double number_ = 0.0;
  std::string text_, shown_;
  List list_;
  Object object_;
};

/// Parse a JSON document. Raises ModelError, which begins with `source`, if the document is not well-formed (with line and column), if an object has
/// a duplicate key, or if a number is not finite.
Value parse_json(const std::string& text, const std::string& source);
/// Return JSON in one line.
std::string json(const Value& value);
/// Return JSON in several lines; a value that fits into 120 characters is written in one line.
std::string json_in_lines(const Value& value);

}  // namespace sarrus
