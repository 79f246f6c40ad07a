#pragma once
/// Cells of CSV, as RFC 4180 has them.

#include <string>

namespace infeed {

/// In quotes where commas, quotes or line ends need them.
[[nodiscard]] inline std::string csv_cell(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string cell = "\"";
  for (const char c : text) cell.append(c == '"' ? 2 : 1, c);
  return cell + '"';
}

}  // namespace infeed
