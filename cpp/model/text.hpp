// Texts of messages and documents.
#pragma once

#include <string>
#include <vector>

namespace sarrus {

class Value;

/// Return the shortest decimal number that reads as x again, as Python writes it: 0.1, 1.0, 1e-05, inf.
std::string shortest(double x);
/// Return six digits: %g.
std::string six_digits(double x);
/// Return a double from the digits of JSON, in any locale; infinite if it is too large.
double to_double(const std::string& digits);

/// Return a value, or a text, as Python writes it in messages: [1.0, 'x', None]; lists as tuples if they are tuples in descriptions.
std::string shown(const Value& value, bool as_tuple = false);
std::string quoted(const std::string& text);
/// Return a shape: (3,), (2, 3).
std::string shape_text(const std::vector<std::size_t>& shape);
std::string joined(const std::vector<std::string>& names, const std::string& separator = ", ");

/// Return the number of characters of a text in UTF-8.
std::size_t letters(const std::string& text);
/// Return a text with an escape for each character that controls a terminal.
std::string printable(const std::string& text);
/// Raise ModelError for a name that cannot be shown as it is, or is too long to be shown.
void check_printable(const std::string& kind, const std::string& name);
/// Return a long message without its middle, because names in documents may have any length.
std::string shortened(const std::string& message);

/// Return the end of a message about an unknown name: the most similar name, or all existing names.
std::string did_you_mean(const std::string& name, std::vector<std::string> candidates);
/// Return the message about an unknown name; `what` refers to it. Frames of joints, NAME.parent and NAME.child, are valid, but not listed.
std::string unknown_name(const std::string& kind, const std::string& name, std::vector<std::string> candidates,
                         const std::string& subject = "");
/// Raise NameNotFoundError with it.
[[noreturn]] void no_such_name(const std::string& kind, const std::string& name, std::vector<std::string> candidates,
                               const std::string& subject = "");

}  // namespace sarrus
