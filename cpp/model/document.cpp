// Conversion of descriptions to and from JSON, by visiting their fields. A field with its default value is omitted. If an object may have several
// types (a joint's type, a constraint, a shape), the key "type" contains the type. Pairs (name, value) form an object. python/sarrus/io/complete.py
// contains the schema.
#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>
#include <type_traits>

#include "../mechanism/errors.hpp"
#include "builder.hpp"
#include "text.hpp"

namespace sarrus::model {
namespace {

constexpr int format = 1;

struct AnyField {
  template <class X> void operator()(const char*, X&) {}
  template <class X> void operator()(const char*, X&, const std::common_type_t<X>&) {}
};
template <class T, class = void> constexpr bool has_fields = false;
template <class T> constexpr bool has_fields<T, std::void_t<decltype(std::declval<T&>().fields(AnyField()))>> = true;

/// Fields of a type in documents, for types whose objects are checked when they are created.
template <class T> struct FieldsOf {};
template <> struct FieldsOf<Law> {
  using type = LawFields;
};
template <> struct FieldsOf<Transform<double>> {
  using type = TransformFields;
};
template <> struct FieldsOf<Inertia> {
  using type = InertiaFields;
};
template <class T, class = void> constexpr bool is_made = false;
template <class T> constexpr bool is_made<T, std::void_t<typename FieldsOf<T>::type>> = true;

// ---- reading ---------------------------------------------------------------------------------------------------------------------------

[[noreturn]] void fail(const std::string& path, const std::string& message) {
  throw ModelError(shortened(path.empty() ? message : path + " " + message));
}

/// Return the JSON text of a value for messages, shortened to 60 characters.
std::string excerpt(const Value& value) {
  const std::string text = json(value);
  if (letters(text) <= 60) return text;
  std::size_t bytes = 0;
  for (std::size_t n = 0; n < 60; ++n)
    for (++bytes; bytes < text.size() && (static_cast<unsigned char>(text[bytes]) & 0xc0) == 0x80;) ++bytes;
  return text.substr(0, bytes) + " …";
}
void require(bool fine, const std::string& path, const char* expected, const Value& value) {
  if (!fine) fail(path, std::string("must be ") + expected + "; got " + excerpt(value));
}

/// Return make(), and prefix its error messages by `place`.
template <class F> auto at(const std::string& place, F make) {
  try {
    return make();
  } catch (const ModelError& error) {
    throw ModelError(shortened(place.empty() ? error.what() : place + ": " + error.what()));
  }
}

std::string inside(const std::string& path, const std::string& key) { return path.empty() ? key : path + "." + key; }
std::string element(const std::string& path, std::size_t k, const Value& value) {
  const Value* name = value.is_object() ? value.find("name") : nullptr;
  return path + "[" + std::to_string(k) + "]" + (name && name->is_text() ? " '" + name->text() + "'" : "");
}

double read_number(const Value& value, const std::string& path) {
  if (value.is_text() && (value.text() == "inf" || value.text() == "-inf")) return value.text() == "inf" ? HUGE_VAL : -HUGE_VAL;
  require(value.is_number(), path, "a number", value);
  if (!std::isfinite(value.number())) fail(path, "is " + excerpt(value) + ", which is not finite");
  return value.number();
}

/// Read numbers in lists of any depth.
Value read_numbers(const Value& value, const std::string& path) {
  if (value.is_list()) {
    Value::List all;
    for (std::size_t k = 0; k < value.list().size(); ++k)
      all.push_back(read_numbers(value.list()[k], path + "[" + std::to_string(k) + "]"));
    return all;
  }
  const bool infinite = value.is_text() && (value.text() == "inf" || value.text() == "-inf");
  if (value.is_null() || (value.is_text() && !infinite)) return value;
  return read_number(value, path);
}

struct Keys {
  std::vector<std::string>&candidates, &required;
  template <class X> void operator()(const char* key, X&) { candidates.push_back(key), required.push_back(key); }
  template <class X> void operator()(const char* key, X&, const std::common_type_t<X>&) { candidates.push_back(key); }
};
struct Reader {
  static void read(const Value& value, const std::string& path, double& to) { to = read_number(value, path); }
  static void read(const Value& value, const std::string& path, Value& to) { to = read_numbers(value, path); }
  static void read(const Value& value, const std::string& path, bool& to) {
    require(value.is(Value::Sort::truth), path, "true or false", value);
    to = value.number() != 0.0;
  }
  static void read(const Value& value, const std::string& path, int& to) {
    require(value.is(Value::Sort::integer), path, "an integer", value);
    to = static_cast<int>(std::max(-1e9, std::min(1e9, value.number())));
  }
  static void read(const Value& value, const std::string& path, std::string& to) {
    require(value.is_text(), path, "a text", value);
    to = value.text();
  }
  /// Raise an error for a function, which a file cannot contain.
  static void read(const Value& value, const std::string& path, std::monostate&) { require(false, path, "null", value); }

  template <class T> static void read(const Value& value, const std::string& path, std::optional<T>& to) {
    if (value.is_null())
      to.reset();
    else
      read(value, path, to.emplace());
  }
  template <class T> static void read(const Value& value, const std::string& path, std::vector<T>& to) {
    require(value.is_list(), path, "a list", value);
    to.clear();
    for (std::size_t k = 0; k < value.list().size(); ++k) {
      T x{};
      read(value.list()[k], element(path, k, value.list()[k]), x);
      to.push_back(std::move(x));
    }
  }
  template <class T> static void read(const Value& value, const std::string& path, Named<T>& to) {
    require(value.is_object(), path, "an object", value);
    to.clear();
    for (const auto& [name, x] : value.object()) {
      to.emplace_back(name, T{});
      read(x, path + "['" + name + "']", to.back().second);
    }
  }
  /// Read a list of given length whose items may have different types.
  template <class... T> static void read_each(const Value& value, const std::string& path, T&... to) {
    require(value.is_list(), path, "a list", value);
    require(value.list().size() == sizeof...(T), path, ("a list of " + std::to_string(sizeof...(T))).c_str(), value);
    std::size_t k = 0;
    ((read(value.list()[k], element(path, k, value.list()[k]), to), ++k), ...);
  }
  template <std::size_t... k, std::size_t n>
  static void read_each(const Value& value, const std::string& path, std::array<double, n>& to, std::index_sequence<k...>) {
    read_each(value, path, to[k]...);
  }
  template <std::size_t n> static void read(const Value& value, const std::string& path, std::array<double, n>& to) {
    read_each(value, path, to, std::make_index_sequence<n>());
  }
  static void read(const Value& value, const std::string& path, BodyPoint& to) { read_each(value, path, to.body, to.point); }
  static void read(const Value& value, const std::string& path, Term& to) {
    read_each(value, path, to.joint, to.index, to.coefficients);
  }
  static void read(const Value& value, const std::string& path, Factor& to) {
    read_each(value, path, to.joint, to.index, to.function);
  }

  /// Return the entry "type" of an object, and its other entries.
  static std::pair<std::string, Value::Object> kind_and_entries(const Value& value, const std::string& path,
                                                                const std::vector<std::string>& kinds) {
    require(value.is_object(), path, "an object", value);
    const Value* type = value.find("type");
    const std::string name = type && type->is_text() ? type->text() : "";
    if (!type || !type->is_text() || std::find(kinds.begin(), kinds.end(), name) == kinds.end())
      fail(path, "has the \"type\" " + excerpt(type ? *type : Value()) +
                     did_you_mean(type && type->is_text() ? name : shown(type ? *type : Value()), kinds));
    Value::Object entries;
    for (const auto& entry : value.object())
      if (entry.first != "type") entries.push_back(entry);
    return {name, entries};
  }

  /// Raise an error for unknown keys, and for missing ones.
  static void check_keys(const Value::Object& entries, const std::string& path, const std::vector<std::string>& candidates,
                         const std::vector<std::string>& required) {
    for (const auto& entry : entries)
      if (std::find(candidates.begin(), candidates.end(), entry.first) == candidates.end())
        fail(path, "has an unknown key " + excerpt(entry.first) + did_you_mean(entry.first, candidates));
    for (const std::string& key : required)
      if (!Value::find(entries, key)) fail(path, "has no \"" + key + "\"");
  }

  template <class T> static void read_fields(const Value::Object& entries, const std::string& path, T& to) {
    std::vector<std::string> candidates, required;
    to.fields(Keys{candidates, required});
    check_keys(entries, path, candidates, required);
    for (const auto& entry : entries)
      // read fields in the order of the document, so that the error that is raised is the first one in the document
      to.fields(ReadOne{entry, path});
  }

  static void read(const Value& value, const std::string& path, JointType& to) {
    const auto [kind, entries] = kind_and_entries(value, path, joint_kind_names());
    std::vector<std::string> candidates, required;
    Value::Object made;
    const std::vector<JointField> fields = joint_fields(kind);
    for (const JointField& f : fields) {
      candidates.push_back(f.name);
      if (f.required) required.push_back(f.name);
    }
    check_keys(entries, path, candidates, required);
    for (const auto& [key, x] : entries) {
      const auto field = std::find_if(fields.begin(), fields.end(), [&key = key](const JointField& f) { return f.name == key; });
      made.emplace_back(key, field->one_number ? Value(read_number(x, inside(path, key))) : read_numbers(x, inside(path, key)));
    }
    to = at(path, [&, &kind = kind] { return joint_type(kind, made); });
  }

  template <class... Kinds> static void read(const Value& value, const std::string& path, std::variant<Kinds...>& to) {
    std::vector<std::string> kinds;
    const auto add = [&](auto kind) {
      if constexpr (!std::is_same_v<decltype(kind), BetweenFrames>)
        kinds.push_back(kind.kind);
      else
        each_between_frames([&](auto frame_kind) { kinds.push_back(frame_kind.name); });
    };
    (add(Kinds{}), ...);
    const auto [name, entries] = kind_and_entries(value, path, kinds);
    const auto take = [&, &name = name, &entries = entries](auto kind) {
      if constexpr (!std::is_same_v<decltype(kind), BetweenFrames>) {
        if (name != kind.kind) return;
        read_fields(entries, path, kind);
        to = std::move(kind);
      } else {
        each_between_frames([&](auto frame_kind) {
          if (name != frame_kind.name) return;
          kind.kind = frame_kind;
          read_fields(entries, path, kind);
          to = std::move(kind);
        });
      }
    };
    (take(Kinds{}), ...);
  }

  template <class T> static void read(const Value& value, const std::string& path, T& to) {
    require(value.is_object(), path, "an object", value);
    if constexpr (is_made<T>) {
      typename FieldsOf<T>::type fields;
      read_fields(value.object(), path, fields);
      to = at(path, [&] { return fields.made(); });
    } else {
      static_assert(has_fields<T>);
      read_fields(value.object(), path, to);
    }
  }

  struct ReadOne {
    const Value::Member& entry;
    const std::string& path;
    template <class X> void operator()(const char* key, X& member) {
      if (entry.first == key) read(entry.second, inside(path, key), member);
    }
    template <class X> void operator()(const char* key, X& member, const std::common_type_t<X>&) { (*this)(key, member); }
  };
};

// ---- writing ---------------------------------------------------------------------------------------------------------------------------

struct Writer {
  static Value plain(bool x) { return x; }
  static Value plain(int x) { return x; }
  static Value plain(double x) { return std::isfinite(x) ? Value(x) : Value(x > 0.0 ? "inf" : "-inf"); }
  static Value plain(const std::string& x) { return x; }
  static Value plain(const std::monostate&) { return {}; }
  static Value plain(const Value& x) {
    if (!x.is_list()) return x.is_number() ? plain(x.number()) : x;
    Value::List all;
    for (const Value& each : x.list()) all.push_back(plain(each));
    return all;
  }
  template <class T> static Value plain(const std::optional<T>& x) { return x ? plain(*x) : Value(); }
  template <class Row> static Value plain_list(const Row& row) {
    Value::List all;
    for (const auto& x : row) all.push_back(plain(x));
    return all;
  }
  template <class T> static Value plain(const std::vector<T>& x) { return plain_list(x); }
  template <std::size_t n> static Value plain(const std::array<double, n>& x) { return plain_list(x); }
  template <class T> static Value plain(const Named<T>& x) {
    Value::Object all;
    for (const auto& [name, each] : x) all.emplace_back(name, plain(each));
    return all;
  }
  static Value plain(const BodyPoint& x) { return {x.body, plain(x.point)}; }
  static Value plain(const Term& x) { return {x.joint, x.index, plain(x.coefficients)}; }
  static Value plain(const Factor& x) { return {x.joint, x.index, plain(x.function)}; }

  template <class T> static void write_fields(const T& from, Value::Object& to) {
    const_cast<T&>(from).fields(Entries{to});  // read only
  }

  static Value plain(const JointType& joint) {
    Value::Object all = {{"type", joint.name()}};
    for (auto& [key, value] : fields_of(joint)) all.emplace_back(key, plain(value));
    return all;
  }
  template <class... Kinds> static Value plain(const std::variant<Kinds...>& x) {
    return std::visit(
        [](const auto& kind) -> Value {
          Value::Object all;
          if constexpr (!std::is_same_v<std::decay_t<decltype(kind)>, BetweenFrames>)
            all.emplace_back("type", kind.kind);
          else
            visit_constraint(kind.kind, [&](const auto& frame_kind) { all.emplace_back("type", frame_kind.name); });
          write_fields(kind, all);
          return all;
        },
        x);
  }
  template <class T> static Value plain(const T& from) {
    Value::Object all;
    if constexpr (is_made<T>)
      write_fields(typename FieldsOf<T>::type(from), all);
    else
      write_fields(from, all);
    return all;
  }

  struct Entries {
    Value::Object& all;
    template <class X> void operator()(const char* key, X& member) { all.emplace_back(key, plain(member)); }
    template <class X> void operator()(const char* key, X& member, const std::common_type_t<X>& usual) {
      if (Value value = plain(member); value != plain(usual)) all.emplace_back(key, std::move(value));
    }
  };
};

/// Convert everything except warnings and visuals.
Value identity_of(const Description& description) {
  Description d = description;
  d.warnings.clear(), d.visuals.clear();
  return Writer::plain(d);
}

}  // namespace

bool operator==(const Description& a, const Description& b) { return identity_of(a) == identity_of(b); }
std::size_t hash(const Description& description) { return identity_of(description).hash(); }

Value document_of(const Description& description) {
  Value::Object document = {{"format", format}};
  Writer::write_fields(description, document);
  return document;
}

std::string write_json(const Description& description) { return json_in_lines(document_of(description)) + "\n"; }

Description described(const Value& document) {
  const Value* number = document.is_object() ? document.find("format") : nullptr;
  if (!number) throw ModelError("is not a mechanism in the format of sarrus; expected an object with \"format\": 1");
  if (!number->is_number() || number->number() != format) {
    const bool newer = number->is(Value::Sort::integer) && number->number() > format;
    throw ModelError("\"format\" is " + excerpt(*number) + ": " +
                     (newer ? "a newer version of sarrus wrote it" : "expected " + std::to_string(format)));
  }
  Value::Object entries;
  for (const auto& entry : document.object())
    if (entry.first != "format" && entry.first != "$schema") entries.push_back(entry);
  Description description;
  Reader::read_fields(entries, "", description);
  return description;
}

Builder read_json(const std::string& text, const std::string& source) {
  const Value document = parse_json(text, source);
  return at(source, [&] {
    Builder builder(described(document));
    for (const Body& body : builder.description().bodies) {
      const std::string fault = body.inertia.fault();
      const auto& candidates = builder.description().warnings;
      const auto holds_it = [&](const std::string& sentence) { return sentence.find(fault) != std::string::npos; };
      if (!fault.empty() && std::none_of(candidates.begin(), candidates.end(), holds_it))
        builder.warn("body '" + body.name + "': " + fault);
    }
    return builder;
  });
}

Builder load_builder(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("the file '" + path + "' cannot be read");
  std::stringstream text;
  text << file.rdbuf();
  return read_json(text.str(), path);
}

}  // namespace sarrus::model
