// Texts of messages and documents.
#pragma once

#include <string>
#include <vector>

namespace sarrus {

class Value;

/// The shortest decimal number that reads as x again, as Python writes it: 0.1, 1.0, 1e-05, inf.
std::string shortest(double x);
/// Six digits: %g.
std::string six_digits(double x);
/// A double of the digits of JSON, whatever the locale; infinite where it is too large.
double to_double(const std::string& digits);

/// A value, or a text, as Python writes it in messages: [1.0, 'x', None]; lists as tuples where they are so in descriptions.
std::string shown(const Value& value, bool as_tuple = false);
std::string quoted(const std::string& text);
/// A shape: (3,), (2, 3).
std::string shape_text(const std::vector<std::size_t>& shape);
std::string joined(const std::vector<std::string>& names, const std::string& separator = ", ");

/// Letters of a text in UTF-8.
std::size_t letters(const std::string& text);
/// With an escape for each letter that a terminal obeys instead of showing it.
std::string printable(const std::string& text);
/// ModelError for a name that cannot be shown as it is, or is longer than anybody shows.
void check_printable(const std::string& kind, const std::string& name);
/// The first and the last letters of a long message; names in documents may have any length.
std::string shortened(const std::string& message);

/// The end of a message about an unknown name: the known name that is most like it, or all of them.
std::string did_you_mean(const std::string& name, std::vector<std::string> candidates);
/// The message about a name that is not among the known ones; `what` refers to it. Frames of joints, NAME.parent and NAME.child, are known, and not
/// listed.
std::string unknown_name(const std::string& kind, const std::string& name, std::vector<std::string> candidates,
                         const std::string& subject = "");
/// NameNotFoundError with it.
[[noreturn]] void no_such_name(const std::string& kind, const std::string& name, std::vector<std::string> candidates,
                               const std::string& subject = "");

}  // namespace sarrus
