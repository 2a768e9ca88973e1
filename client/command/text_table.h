// Columns of text for people.
#pragma once

#include <string>
#include <vector>

namespace attend::client {

// Columns as wide as their widest cell, two spaces apart; the first is flush left, numbers' columns
// (every cell but the head's begins with a digit, sign or is "-") flush right. Ends each row with a
// line feed; no trailing spaces. `rows` have equal lengths; the first is the head.
std::string TextTable(const std::vector<std::vector<std::string>>& rows);

// Columns that a terminal needs for UTF-8 text, one for each code point.
size_t DisplayWidth(const std::string& text);
std::string PadLeft(const std::string& text, size_t width);
std::string PadRight(const std::string& text, size_t width);

}  // namespace attend::client
