#pragma once
/// What the states of samplers have in common: whose they are, and the checks before one is taken up.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "infeed/base/state.h"

namespace infeed {

/// Reads the state of one sampler and refuses what another has saved, or the same with other options.
class StateCheck {
 public:
  /// Throws StateError unless the state's "type" is `type`.
  StateCheck(const State& state, std::string_view type);

  /// Throws StateError naming both values unless the state has `ours` under `key`.
  void same(std::string_view key, std::int64_t ours) const;
  void same(std::string_view key, std::uint64_t ours) const;
  void same(std::string_view key, bool ours) const;

  [[nodiscard]] std::uint64_t epoch() const;
  /// The integer under `key`; throws StateError outside [0, limit].
  [[nodiscard]] std::int64_t position(std::string_view key, std::int64_t limit) const;

 private:
  const State& state_;
  std::string_view type_;
};

/// Tells one list of numbers from another; kept in states instead of the list.
[[nodiscard]] std::uint64_t fingerprint(std::span<const std::byte> bytes) noexcept;

/// Throws ConfigError unless 0 <= size < 2^62.
void check_size(std::string_view sampler, std::int64_t size);

}  // namespace infeed
