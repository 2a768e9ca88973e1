#include "client/command/text_table.h"

#include <algorithm>
#include <cctype>

namespace attend::client {
namespace {

bool LooksLikeNumber(const std::string& cell) {
  return cell.empty() || cell == "-" || std::isdigit(static_cast<unsigned char>(cell[0])) ||
         ((cell[0] == '-' || cell[0] == '+') && cell.size() > 1);
}

}  // namespace

size_t DisplayWidth(const std::string& text) {
  return std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; });
}

std::string PadLeft(const std::string& text, size_t width) {
  const size_t have = DisplayWidth(text);
  return have < width ? std::string(width - have, ' ') + text : text;
}

std::string PadRight(const std::string& text, size_t width) {
  const size_t have = DisplayWidth(text);
  return have < width ? text + std::string(width - have, ' ') : text;
}

std::string TextTable(const std::vector<std::vector<std::string>>& rows) {
  const size_t columns = rows.front().size();
  std::vector<size_t> widths(columns, 0);
  std::vector<bool> numbers(columns, true);
  for (size_t r = 0; r < rows.size(); ++r) {
    for (size_t c = 0; c < columns; ++c) {
      widths[c] = std::max(widths[c], DisplayWidth(rows[r][c]));
      if (r > 0 && !LooksLikeNumber(rows[r][c])) numbers[c] = false;
    }
  }
  std::string text;
  for (const std::vector<std::string>& row : rows) {
    std::string line;
    for (size_t c = 0; c < columns; ++c) {
      const bool right = c > 0 && numbers[c];
      line +=
          (c > 0 ? "  " : "") + (right ? PadLeft(row[c], widths[c]) : PadRight(row[c], widths[c]));
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

}  // namespace attend::client
