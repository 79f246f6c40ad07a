#pragma once
/// Random tensors: Philox streams, one per draw.

#include <cstdint>

#include "infeed/base/export.h"
#include "infeed/base/rng.h"

namespace infeed {

/// Hands out one Philox stream per random tensor, keyed by (seed, 0, number of the draw): a model made by the same
/// sequence of layers gets the same values on any machine and with any number of threads. Threads: one owner.
class INFEED_API Generator {
 public:
  explicit Generator(std::uint64_t seed = 0) noexcept : seed_(seed) {}
  void manual_seed(std::uint64_t seed) noexcept {
    seed_ = seed;
    draws_ = 0;
  }
  [[nodiscard]] std::uint64_t initial_seed() const noexcept { return seed_; }
  /// The stream of the next draw.
  [[nodiscard]] Philox next_stream() noexcept { return Philox(seed_, 0, draws_++); }

 private:
  std::uint64_t seed_;
  std::uint64_t draws_ = 0;
};

/// The calling thread's generator, which layers and factories use unless given another. Seed 0 at first.
[[nodiscard]] INFEED_API Generator& default_generator() noexcept;

/// Seeds default_generator() of the calling thread.
INFEED_API void manual_seed(std::uint64_t seed) noexcept;

}  // namespace infeed
