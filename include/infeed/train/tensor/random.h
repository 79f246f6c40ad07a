#pragma once
/// Random numbers for tensors: PyTorch's CPU streams.

#include <cstdint>
#include <optional>

#include "infeed/base/export.h"
#include "infeed/base/rng.h"

namespace infeed {

class Tensor;

/// PyTorch's CPU generator with the normal numbers it keeps for later. Threads: one owner at a time.
class INFEED_API Generator {
 public:
  Generator() = default;
  explicit Generator(std::uint64_t seed) : engine_(seed) {}
  void manual_seed(std::uint64_t seed) { *this = Generator(seed); }
  [[nodiscard]] std::uint64_t initial_seed() const noexcept { return engine_.initial_seed(); }
  [[nodiscard]] TorchGenerator& engine() noexcept { return engine_; }

  /// Standard normal as short tensors draw it: every second one was made by the draw before.
  double normal();

  /// Where it stands, as uint8 bytes for this version of the library: they resume a run.
  [[nodiscard]] Tensor get_state() const;
  /// Errors: TypeError for another dtype, RuntimeError for bytes that are no state.
  void set_state(const Tensor& state);

 private:
  TorchGenerator engine_;
  std::optional<double> next_normal_;
};

/// The program's generator, which layers and factories use unless given another.
[[nodiscard]] INFEED_API Generator& default_generator() noexcept;

/// Seeds default_generator().
INFEED_API void manual_seed(std::uint64_t seed);

}  // namespace infeed
