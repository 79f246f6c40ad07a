#include "command.h"

#include <fmt/format.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>

namespace bench {
namespace {

constexpr std::string_view kNumber = "0123456789.";

std::optional<double> to_number(std::string_view text) {
  const std::string copy(text);
  char* end = nullptr;
  const double value = std::strtod(copy.c_str(), &end);
  return end == copy.c_str() ? std::nullopt : std::optional(value);
}

}  // namespace

std::string output_of(const std::string& command) {
  FILE* pipe = popen(command.c_str(), "r");  // of our own making. NOLINT(bugprone-command-processor)
  if (pipe == nullptr) throw std::runtime_error(fmt::format("cannot run: {}", command));
  std::string text;
  std::array<char, 4096> piece{};
  for (std::size_t got; (got = fread(piece.data(), 1, piece.size(), pipe)) > 0;) text.append(piece.data(), got);
  const int status = pclose(pipe);
  if (status != 0) throw std::runtime_error(fmt::format("status {} from: {}\n{}", status, command, text));
  return text;
}

std::optional<double> number_before(std::string_view text, std::string_view unit) {
  const std::size_t end = text.rfind(unit);
  if (end == std::string_view::npos || end == 0) return std::nullopt;
  const std::size_t before = text.find_last_not_of(kNumber, end - 1);
  const std::size_t begin = before == std::string_view::npos ? 0 : before + 1;
  return to_number(text.substr(begin, end - begin));
}

std::optional<double> number_behind(std::string_view text, std::string_view label) {
  const std::size_t at = text.find(label);
  return at == std::string_view::npos ? std::nullopt : to_number(text.substr(at + label.size()));
}

}  // namespace bench
