#include "value.hpp"

#include <cmath>
#include <cstdint>
#include <functional>
#include <set>

#include "../mechanism/errors.hpp"
#include "text.hpp"

namespace sarrus {

Value::Value(const Mat3<double>& x) : sort_(Sort::list) {
  for (int i = 0; i < 3; ++i) list_.push_back(Value{x(i, 0), x(i, 1), x(i, 2)});
}

Value Value::integer(std::string digits, double x) {
  Value value(x);
  value.sort_ = Sort::integer, value.text_ = std::move(digits);
  return value;
}

const Value* Value::find(const Object& object, const std::string& key) {
  for (const Member& member : object)
    if (member.first == key) return &member.second;
  return nullptr;
}

bool Value::operator==(const Value& other) const {
  return sort_ == other.sort_ && number_ == other.number_ && text_ == other.text_ && list_ == other.list_ &&
         object_ == other.object_;
}

std::size_t Value::hash() const {
  std::size_t all = static_cast<std::size_t>(sort_);
  const auto add = [&](std::size_t x) { all = (all ^ x) * 0x100000001b3ull + 0x9e3779b9; };
  add(std::hash<double>()(number_)), add(std::hash<std::string>()(text_));
  for (const Value& x : list_) add(x.hash());
  for (const Member& member : object_) add(std::hash<std::string>()(member.first)), add(member.second.hash());
  return all;
}

namespace {

// ---- reading -------------------------------------------------------------------------------------------------------------------------

class Parser {
 public:
  Parser(const std::string& text, const std::string& source) : text_(text), source_(source) {
    if (text_.compare(0, 3, "\xef\xbb\xbf") == 0) at_ = 3;
  }

  Value document() {
    Value value = (skip(), next(0));
    skip();
    if (at_ < text_.size()) fail("Extra data", at_);
    return value;
  }

 private:
  static constexpr int deepest = 500;

  [[noreturn]] void fail(const std::string& message, std::size_t at) const {
    std::size_t line = 1, begin = 0;
    for (std::size_t i = 0; i < at && i < text_.size(); ++i)
      if (text_[i] == '\n') ++line, begin = i + 1;
    throw ModelError(source_ + ":" + std::to_string(line) + ":" + std::to_string(letters(text_.substr(begin, at - begin)) + 1) +
                     ": not well-formed JSON: " + message);
  }
  [[noreturn]] void refuse(const std::string& message) const { throw ModelError(source_ + ": " + message); }

  char current() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  void skip() {
    while (at_ < text_.size() && (current() == ' ' || current() == '\n' || current() == '\r' || current() == '\t')) ++at_;
  }
  bool take(const std::string& word) {
    if (text_.compare(at_, word.size(), word) != 0) return false;
    at_ += word.size();
    return true;
  }

  Value next(int depth) {
    if (depth > deepest) refuse("is nested too deeply for a model");
    switch (current()) {
      case '"': return text();
      case '{': return object(depth);
      case '[': return list(depth);
      default: break;
    }
    if (take("null")) return {};
    if (take("true")) return true;
    if (take("false")) return false;
    for (const char* word : {"NaN", "Infinity", "-Infinity"})
      if (take(word)) refuse(std::string(word) + " is not a number in JSON; write an infinite limit as \"inf\" or \"-inf\"");
    return number();
  }

  Value number() {
    const auto is_digit = [&] { return current() >= '0' && current() <= '9'; };
    const auto digits = [&] {
      while (is_digit()) ++at_;
    };
    const std::size_t begin = at_;
    if (current() == '-') ++at_;
    if (!is_digit()) fail("Expecting value", begin);
    current() == '0' ? static_cast<void>(++at_) : digits();
    bool is_integer = true;
    if (current() == '.' && at_ + 1 < text_.size() && text_[at_ + 1] >= '0' && text_[at_ + 1] <= '9')
      ++at_, digits(), is_integer = false;
    if (current() == 'e' || current() == 'E') {
      const std::size_t back = at_++;
      if (current() == '+' || current() == '-') ++at_;
      is_digit() ? (digits(), static_cast<void>(is_integer = false)) : static_cast<void>(at_ = back);
    }
    const std::string all = text_.substr(begin, at_ - begin);
    const double x = to_double(all);
    if (is_integer) return Value::integer(all, x);
    if (!std::isfinite(x)) refuse(all.substr(0, 60) + " is too large for a float64 number");
    return x;
  }

  Value list(int depth) {
    Value::List all;
    ++at_, skip();
    if (take("]")) return all;
    for (;;) {
      all.push_back(next(depth + 1)), skip();
      if (take("]")) return all;
      if (!take(",")) fail("Expecting ',' delimiter", at_);
      skip();
    }
  }

  Value object(int depth) {
    Value::Object all;
    std::set<std::string> keys;
    std::string twice;
    bool unique = true;
    ++at_, skip();
    if (take("}")) return all;
    for (;;) {
      if (current() != '"') fail("Expecting property name enclosed in double quotes", at_);
      std::string key = text();
      skip();
      if (!take(":")) fail("Expecting ':' delimiter", at_);
      skip();
      if (!keys.insert(key).second && unique) unique = false, twice = key;
      all.emplace_back(std::move(key), next(depth + 1)), skip();
      if (take("}")) break;
      const std::size_t comma = at_;
      if (!take(",")) fail("Expecting ',' delimiter", at_);
      skip();
      if (current() != '"') fail("Expecting property name enclosed in double quotes", comma + 1 == at_ ? at_ : at_);
    }
    if (!unique) {
      std::string name = json(twice);
      if (letters(name) > 60) name = name.substr(0, 60) + " …";
      refuse("the key " + printable(name) + " occurs twice in one object");
    }
    return all;
  }

  std::string text() {
    const std::size_t begin = at_++;
    std::string all;
    for (;;) {
      if (at_ >= text_.size()) fail("Unterminated string starting at", begin);
      const char c = text_[at_];
      if (c == '"') return ++at_, all;
      if (static_cast<unsigned char>(c) < 0x20) fail("Invalid control character at", at_);
      if (c != '\\') {
        all += c, ++at_;
        continue;
      }
      if (++at_ >= text_.size()) fail("Unterminated string starting at", begin);
      const std::string from = "\"\\/bfnrt", to = "\"\\/\b\f\n\r\t";
      if (const std::size_t k = from.find(text_[at_]); k != std::string::npos)
        all += to[k], ++at_;
      else if (text_[at_] == 'u')
        append(all, code_point());
      else
        fail("Invalid \\escape", at_ - 1);
    }
  }

  unsigned four_digits() {
    unsigned code = 0;
    const std::size_t begin = at_;
    for (std::size_t k = 1; k <= 4; ++k) {
      const char c = begin + k < text_.size() ? text_[begin + k] : '\0';
      const bool digit = c >= '0' && c <= '9', letter = (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
      if (!digit && !letter) fail("Invalid \\uXXXX escape", begin);
      code = code * 16 + static_cast<unsigned>(digit ? c - '0' : (c | 0x20) - 'a' + 10);
    }
    at_ = begin + 5;
    return code;
  }
  /// Read the hexadecimal digits after \u; two surrogates form one character.
  unsigned code_point() {
    const unsigned code = four_digits();
    if (code < 0xd800 || code > 0xdbff || text_.compare(at_, 2, "\\u") != 0) return code;
    const std::size_t back = at_++;
    const unsigned low = four_digits();
    if (low >= 0xdc00 && low <= 0xdfff) return 0x10000 + ((code - 0xd800) << 10 | (low - 0xdc00));
    at_ = back;
    return code;
  }
  static void append(std::string& to, unsigned code) {
    const auto tail = [&](int shift) { to += static_cast<char>(0x80 | (code >> shift & 0x3f)); };
    if (code < 0x80)
      to += static_cast<char>(code);
    else if (code < 0x800)
      to += static_cast<char>(0xc0 | code >> 6), tail(0);
    else if (code < 0x10000)
      to += static_cast<char>(0xe0 | code >> 12), tail(6), tail(0);
    else
      to += static_cast<char>(0xf0 | code >> 18), tail(12), tail(6), tail(0);
  }

  const std::string& text_;
  const std::string& source_;
  std::size_t at_ = 0;
};

/// Return the position of the first byte that is not valid UTF-8.
std::size_t first_fault(const std::string& text) {
  for (std::size_t i = 0; i < text.size();) {
    const unsigned char c = static_cast<unsigned char>(text[i]);
    const std::size_t bytes = c < 0x80                ? 1
                              : c >= 0xc2 && c < 0xe0 ? 2
                              : c >= 0xe0 && c < 0xf0 ? 3
                              : c >= 0xf0 && c < 0xf5 ? 4
                                                      : 0;
    if (bytes == 0 || i + bytes > text.size()) return i;
    for (std::size_t k = 1; k < bytes; ++k)
      if ((static_cast<unsigned char>(text[i + k]) & 0xc0) != 0x80) return i;
    i += bytes;
  }
  return std::string::npos;
}

// ---- writing -------------------------------------------------------------------------------------------------------------------------

std::string json_text(const std::string& text) {
  std::string all = "\"";
  for (const char c : text) {
    const std::string from = "\"\\\b\f\n\r\t", to = "\"\\bfnrt";
    if (const std::size_t k = from.find(c); k != std::string::npos) {
      all += '\\', all += to[k];
    } else if (static_cast<unsigned char>(c) < 0x20) {
      char buffer[8];
      std::snprintf(buffer, sizeof buffer, "\\u%04x", static_cast<unsigned>(c));
      all += buffer;
    } else {
      all += c;
    }
  }
  return all + '"';
}

}  // namespace

Value parse_json(const std::string& text, const std::string& source) {
  if (const std::size_t at = first_fault(text); at != std::string::npos)
    throw ModelError(source + ": cannot decode: byte " + std::to_string(at) + " is not UTF-8");
  return Parser(text, source).document();
}

std::string json(const Value& value) {
  std::string all;
  if (value.is_list()) {
    for (const Value& x : value.list()) all += (all.empty() ? "[" : ", ") + json(x);
    return all.empty() ? "[]" : all + "]";
  }
  if (value.is_object()) {
    for (const auto& [key, x] : value.object()) all += (all.empty() ? "{" : ", ") + json_text(key) + ": " + json(x);
    return all.empty() ? "{}" : all + "}";
  }
  if (value.is_null()) return "null";
  if (value.is(Value::Sort::truth)) return value.number() != 0.0 ? "true" : "false";
  if (value.is_text()) return json_text(value.text());
  if (value.is(Value::Sort::integer)) return value.text();
  return shortest(value.number());
}

namespace {

/// Writes a value in one line if it fits, else in several lines, with its items indented by two characters.
struct Layout {
  std::string line, lines;
};
Layout laid_out(const Value& value, std::size_t indent, std::size_t before) {
  constexpr std::size_t width = 120;
  if (!value.is_list() && !value.is_object()) return {json(value), json(value)};
  std::vector<std::string> lines;
  std::string line = value.is_list() ? "[" : "{";
  const auto add = [&](const std::string& key, const Value& x) {
    Layout part = laid_out(x, indent + 2, letters(key));
    line += (lines.empty() ? "" : ", ") + key + part.line;
    lines.push_back(key + part.lines);
  };
  for (const Value& x : value.list()) add("", x);
  for (const auto& [key, x] : value.object()) add(json_text(key) + ": ", x);
  const std::string end = value.is_list() ? "]" : "}", margin(indent, ' ');
  line += end;
  if (lines.empty() || letters(line) + indent + before <= width) return {line, line};
  const std::string begin = "\n" + margin + "  ";
  return {line, line.substr(0, 1) + begin + joined(lines, "," + begin) + "\n" + margin + end};
}

}  // namespace

std::string json_in_lines(const Value& value) { return laid_out(value, 0, 0).lines; }

}  // namespace sarrus
