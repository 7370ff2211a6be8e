#include "text.hpp"

#include <algorithm>
#include <clocale>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <unordered_map>

#include "../mechanism/errors.hpp"
#include "value.hpp"

namespace sarrus {
namespace {

char decimal_point() { return std::localeconv()->decimal_point[0]; }

std::string formatted(const char* format, int digits, double x) {
  char buffer[64];
  std::snprintf(buffer, sizeof buffer, format, digits, x);
  std::string text = buffer;
  std::replace(text.begin(), text.end(), decimal_point(), '.');
  return text;
}

/// Call see(code point, index of its first byte, number of its bytes) for each character of a text in UTF-8.
template <class See> void each_letter(const std::string& text, See see) {
  for (std::size_t i = 0; i < text.size();) {
    const unsigned char c = static_cast<unsigned char>(text[i]);
    std::size_t bytes = c < 0x80 ? 1 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;
    if (i + bytes > text.size()) bytes = 1;
    unsigned code = bytes == 1 ? c : c & (0xffu >> (bytes + 1));
    for (std::size_t k = 1; k < bytes; ++k) code = code << 6 | (static_cast<unsigned char>(text[i + k]) & 0x3f);
    see(code, i, bytes);
    i += bytes;
  }
}

/// Return true for control characters, line ends, changes of the writing direction, and lone surrogates.
bool obeyed(unsigned c) {
  return c < 0x20 || (c >= 0x7f && c <= 0x9f) || (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069) ||
         (c >= 0xd800 && c <= 0xdfff);
}

std::string escaped(unsigned code) {
  char buffer[16];
  if (code == '\n' || code == '\r' || code == '\t') return code == '\n' ? "\\n" : code == '\r' ? "\\r" : "\\t";
  std::snprintf(buffer, sizeof buffer, code < 0x100 ? "\\x%02x" : "\\u%04x", code);
  return buffer;
}

std::string with_escapes(const std::string& text) {
  std::string all;
  each_letter(text, [&](unsigned code, std::size_t at, std::size_t bytes) {
    obeyed(code) ? all += escaped(code) : all.append(text, at, bytes);
  });
  return all;
}

// ---- similarity of names: Ratcliff and Obershelp, twice the number of matching characters over the total number of characters ----

using Places = std::unordered_map<char, std::vector<int>>;

/// Return the number of matching characters: the longest common block, plus the matches on each side of it.
int matching(const std::string& a, int a0, int a1, int b0, int b1, const Places& in_b) {
  int size = 0, i0 = a0, j0 = b0;
  std::unordered_map<int, int> before;  // length of the common block that ends at each position of b
  for (int i = a0; i < a1; ++i) {
    std::unordered_map<int, int> now;
    if (const auto positions = in_b.find(a[static_cast<std::size_t>(i)]); positions != in_b.end())
      for (const int j : positions->second) {
        if (j < b0) continue;
        if (j >= b1) break;
        const auto left = before.find(j - 1);
        const int k = now[j] = (left == before.end() ? 0 : left->second) + 1;
        if (k > size) size = k, i0 = i - k + 1, j0 = j - k + 1;
      }
    before = std::move(now);
  }
  if (size == 0) return 0;
  return size + matching(a, a0, i0, b0, j0, in_b) + matching(a, i0 + size, a1, j0 + size, b1, in_b);
}

}  // namespace

std::string shortest(double x) {
  if (!std::isfinite(x)) return std::isnan(x) ? "nan" : x > 0.0 ? "inf" : "-inf";
  std::string text;
  const bool normal = std::abs(x) >= 1e-300 || x == 0.0;
  for (int digits = normal ? 15 : 1; digits <= 17; ++digits) {
    text = formatted("%.*e", digits - 1, x);
    if (to_double(text) == x) break;
  }
  const bool minus = text[0] == '-';
  const std::size_t e = text.find('e');
  const int exponent = std::atoi(text.c_str() + e + 1);
  std::string digits = text.substr(minus, 1) + (e > minus + 1u ? text.substr(minus + 2u, e - minus - 2u) : "");
  digits.erase(std::max(digits.find_last_not_of('0') + 1, std::size_t{1}));
  const int count = static_cast<int>(digits.size());
  std::string all;
  if (exponent < -4 || exponent >= 16) {
    char buffer[16];
    std::snprintf(buffer, sizeof buffer, "e%c%02d", exponent < 0 ? '-' : '+', std::abs(exponent));
    all = digits.substr(0, 1) + (count > 1 ? "." + digits.substr(1) : "") + buffer;
  } else if (exponent < 0) {
    all = "0." + std::string(static_cast<std::size_t>(-exponent - 1), '0') + digits;
  } else if (count <= exponent + 1) {
    all = digits + std::string(static_cast<std::size_t>(exponent + 1 - count), '0') + ".0";
  } else {
    all = digits.substr(0, static_cast<std::size_t>(exponent) + 1) + "." + digits.substr(static_cast<std::size_t>(exponent) + 1);
  }
  return (minus ? "-" : "") + all;
}

std::string six_digits(double x) { return formatted("%.*g", 6, x); }

double to_double(const std::string& digits) {
  if (decimal_point() == '.') return std::strtod(digits.c_str(), nullptr);
  std::string local = digits;
  std::replace(local.begin(), local.end(), '.', decimal_point());
  return std::strtod(local.c_str(), nullptr);
}

std::string quoted(const std::string& text) {
  const char quote = text.find('\'') != std::string::npos && text.find('"') == std::string::npos ? '"' : '\'';
  std::string all(1, quote);
  each_letter(text, [&](unsigned code, std::size_t at, std::size_t bytes) {
    if (code == '\\' || code == static_cast<unsigned>(quote)) all += '\\';
    obeyed(code) ? all += escaped(code) : all.append(text, at, bytes);
  });
  return all + quote;
}

std::string shown(const Value& value, bool as_tuple) {
  if (!value.shown().empty()) return value.shown();
  std::vector<std::string> parts;
  switch (value.is_object() ? Value::Sort::object : value.is_list() ? Value::Sort::list : Value::Sort::null) {
    case Value::Sort::list: {
      for (const Value& x : value.list()) parts.push_back(shown(x, as_tuple));
      const std::string inside = joined(parts);
      return as_tuple ? "(" + inside + (parts.size() == 1 ? ",)" : ")") : "[" + inside + "]";
    }
    case Value::Sort::object:
      for (const auto& [key, x] : value.object()) parts.push_back(quoted(key) + ": " + shown(x, as_tuple));
      return "{" + joined(parts) + "}";
    default: break;
  }
  if (value.is_null()) return "None";
  if (value.is(Value::Sort::truth)) return value.number() != 0.0 ? "True" : "False";
  if (value.is_text()) return quoted(value.text());
  return value.is(Value::Sort::integer) ? value.text() : shortest(value.number());
}

std::string shape_text(const std::vector<std::size_t>& shape) {
  std::vector<std::string> parts;
  for (const std::size_t n : shape) parts.push_back(std::to_string(n));
  return "(" + joined(parts) + (parts.size() == 1 ? ",)" : ")");
}

std::string joined(const std::vector<std::string>& names, const std::string& separator) {
  std::string all;
  for (const std::string& name : names) all += (&name == names.data() ? "" : separator) + name;
  return all;
}

std::size_t letters(const std::string& text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

std::string printable(const std::string& text) { return with_escapes(text); }

void check_printable(const std::string& kind, const std::string& name) {
  constexpr std::size_t longest = 100000;
  if (const std::size_t n = letters(name); n > longest)
    throw ModelError("a " + kind + " needs a name of at most " + std::to_string(longest) + " characters; got one of " +
                     std::to_string(n));
  unsigned control_code = 0;
  bool fine = true;
  each_letter(name, [&](unsigned code, std::size_t, std::size_t) {
    if (fine && obeyed(code)) fine = false, control_code = code;
  });
  if (fine) return;
  char code[16];
  std::snprintf(code, sizeof code, "U+%04X", control_code);
  throw ModelError("a " + kind + " needs a name that can be printed; " + quoted(name) + " contains " + code);
}

std::string shortened(const std::string& message) {
  const std::string text = printable(message);
  if (letters(text) <= 4000) return text;
  std::string first, last;
  std::size_t n = 0;
  const std::size_t all = letters(text);
  each_letter(text, [&](unsigned, std::size_t at, std::size_t bytes) {
    if (n < 3000) first.append(text, at, bytes);
    if (n >= all - 900) last.append(text, at, bytes);
    ++n;
  });
  return first + " … " + last;
}

std::string did_you_mean(const std::string& name, std::vector<std::string> candidates) {
  // limit the number of names that are compared, because a file may contain any number of them
  constexpr std::size_t most_names = 2000, most_letters = 2000;
  if (candidates.size() > most_names) return "";
  std::sort(candidates.begin(), candidates.end());
  Places in_name;
  for (std::size_t j = 0; j < name.size(); ++j) in_name[name[j]].push_back(static_cast<int>(j));
  if (name.size() >= 200)  // ignore very frequent characters of long names, as Python's difflib does
    for (auto at = in_name.begin(); at != in_name.end();)
      at = at->second.size() > name.size() / 100 + 1 ? in_name.erase(at) : std::next(at);
  const std::string* best = nullptr;
  double ratio = 0.6;
  for (const std::string& candidate : candidates) {
    const double sum = static_cast<double>(candidate.size() + name.size());
    const double most = sum > 0.0 ? 2.0 * static_cast<double>(std::min(candidate.size(), name.size())) / sum : 1.0;
    if (most < ratio || candidate.size() + name.size() > most_letters) continue;
    const int alike = matching(candidate, 0, static_cast<int>(candidate.size()), 0, static_cast<int>(name.size()), in_name);
    if (const double x = sum > 0.0 ? 2.0 * alike / sum : 1.0; x >= ratio) best = &candidate, ratio = x;
  }
  if (best) return "; did you mean '" + *best + "'?";
  if (candidates.empty()) return "; there are none";
  const std::vector<std::string> first(candidates.begin(),
                                       candidates.begin() + std::min<std::ptrdiff_t>(12, candidates.end() - candidates.begin()));
  return "; there are: " + joined(first) + (candidates.size() > 12 ? ", ..." : "");
}

std::string unknown_name(const std::string& kind, const std::string& name, std::vector<std::string> candidates,
                         const std::string& subject) {
  const std::string begin = subject.empty() ? "" : subject + ": ";
  if (kind == "frame") {
    if (std::find(candidates.begin(), candidates.end(), name + ".parent") != candidates.end())
      return begin + "'" + name + "' is a joint; its frames are '" + name + ".parent' and '" + name +
             ".child', on the bodies that it connects";
    const auto is_joint_frame = [](const std::string& frame) {
      const std::size_t dot = frame.rfind('.');
      return dot != std::string::npos && (frame.substr(dot) == ".parent" || frame.substr(dot) == ".child");
    };
    candidates.erase(std::remove_if(candidates.begin(), candidates.end(), is_joint_frame), candidates.end());
  }
  return begin + "no " + kind + " is named '" + printable(name) + "'" + did_you_mean(name, std::move(candidates));
}

void no_such_name(const std::string& kind, const std::string& name, std::vector<std::string> candidates,
                  const std::string& subject) {
  throw NameNotFoundError(unknown_name(kind, name, std::move(candidates), subject));
}

}  // namespace sarrus
