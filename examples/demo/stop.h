#pragma once
/// Ctrl-C: asked for at any time, acted on between two batches.

#include <exception>

namespace demo {

/// Unwinds the program, so that loaders stop their workers.
class Stopped final : public std::exception {
 public:
  [[nodiscard]] const char* what() const noexcept override { return "stopped on request"; }
};

/// From now on SIGINT and SIGTERM only leave a mark.
void catch_stop_signals();
/// Throws Stopped once the mark is there.
void stop_if_asked();

}  // namespace demo
