#pragma once
/// What the user sees while he waits.

#include <chrono>
#include <cstdint>
#include <string>

namespace demo {

/// Writes a line of text at once, also into a pipe.
void say(const std::string& line);

/// A line that changes: redrawn in place on a terminal, a new line now and then in a log.
class ProgressLine {
 public:
  ProgressLine();
  ~ProgressLine() { clear(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  /// True if an update() now would be seen: spares making the text.
  [[nodiscard]] bool due() const;
  void update(const std::string& text);
  /// Takes the line off the terminal; a log keeps it.
  void clear();

 private:
  using Clock = std::chrono::steady_clock;
  bool terminal_;
  bool drawn_ = false;
  Clock::time_point last_;
};

/// "1 min 20 s"
[[nodiscard]] std::string duration_text(double seconds);
/// "12,345"
[[nodiscard]] std::string count_text(std::int64_t number);

}  // namespace demo
