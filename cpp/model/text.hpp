// Texts of messages and documents.
#pragma once

#include <string>
#include <vector>

namespace sarrus {

class Value;

/// Return the shortest decimal number that converts back to x, in Python's format: 0.1, 1.0, 1e-05, inf.
std::string shortest(double x);
/// Return a number with six significant digits (%g).
std::string six_digits(double x);
/// Convert the digits of a JSON number to a double, independent of the locale; infinite if the number is too large.
double to_double(const std::string& digits);

/// Return a value, or a text, in Python's format for messages: [1.0, 'x', None]. Lists that are tuples in descriptions are written as tuples.
std::string shown(const Value& value, bool as_tuple = false);
std::string quoted(const std::string& text);
/// Return the text of a shape: (3,), (2, 3).
std::string shape_text(const std::vector<std::size_t>& shape);
std::string joined(const std::vector<std::string>& names, const std::string& separator = ", ");

/// Return the number of characters of a text in UTF-8.
std::size_t letters(const std::string& text);
/// Return a text with an escape for each character that controls a terminal.
std::string printable(const std::string& text);
/// Raise ModelError for a name with unprintable characters, or a name that is too long for messages.
void check_printable(const std::string& kind, const std::string& name);
/// Shorten a long message by removing its middle, because names in documents may have any length.
std::string shortened(const std::string& message);

/// Return the last part of a message about an unknown name: the most similar name, or all existing names.
std::string did_you_mean(const std::string& name, std::vector<std::string> candidates);
/// Return the message about an unknown name; `what` names the category, such as "joint". Frames of joints, NAME.parent and NAME.child, are valid
/// names, but are not listed.
std::string unknown_name(const std::string& kind, const std::string& name, std::vector<std::string> candidates,
                         const std::string& subject = "");
/// Raise NameNotFoundError with the message of unknown_name().
[[noreturn]] void no_such_name(const std::string& kind, const std::string& name, std::vector<std::string> candidates,
                               const std::string& subject = "");

}  // namespace sarrus
