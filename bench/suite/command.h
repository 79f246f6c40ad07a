#pragma once
/// Figures that other programs print.

#include <optional>
#include <string>
#include <string_view>

namespace bench {

/// What `command` prints; throws std::runtime_error with it if the command fails.
[[nodiscard]] std::string output_of(const std::string& command);

/// The number before the last `unit` ("868.2" of "CPU 868.2 us/img" for " us").
[[nodiscard]] std::optional<double> number_before(std::string_view text, std::string_view unit);
/// The number behind the first `label`.
[[nodiscard]] std::optional<double> number_behind(std::string_view text, std::string_view label);

}  // namespace bench
