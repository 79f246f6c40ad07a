#include "console.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>

namespace demo {
namespace {

using namespace std::chrono_literals;
constexpr auto kTerminalPause = 200ms;
constexpr auto kLogPause = 10s;  // few lines where each one stays

}  // namespace

void say(const std::string& line) {
  fmt::print("{}\n", line);
  std::fflush(stdout);
}

ProgressLine::ProgressLine() : terminal_(isatty(STDOUT_FILENO) == 1), last_(Clock::now()) {}

bool ProgressLine::due() const {
  return Clock::now() - last_ >= (terminal_ ? Clock::duration(kTerminalPause) : kLogPause);
}

void ProgressLine::update(const std::string& text) {
  if (!due()) return;
  last_ = Clock::now();
  drawn_ = terminal_;
  fmt::print("{}  {}{}", terminal_ ? "\r" : "", text, terminal_ ? "\x1b[K" : "\n");
  std::fflush(stdout);
}

void ProgressLine::clear() {
  if (drawn_) fmt::print("\r\x1b[K");
  std::fflush(stdout);
  drawn_ = false;
}

std::string duration_text(double seconds) {
  const auto whole = std::lround(seconds);
  return whole < 60 ? fmt::format("{} s", whole) : fmt::format("{} min {:02} s", whole / 60, whole % 60);
}

std::string count_text(std::int64_t number) {
  std::string digits = std::to_string(number);
  for (auto at = static_cast<std::ptrdiff_t>(digits.size()) - 3; at > 0; at -= 3) {
    digits.insert(static_cast<std::size_t>(at), 1, ',');
  }
  return digits;
}

}  // namespace demo
