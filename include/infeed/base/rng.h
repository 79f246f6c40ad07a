#pragma once
/// Random numbers: Philox for transforms (counter-based, no state to carry), TorchGenerator for PyTorch's orders.

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "infeed/base/export.h"

namespace infeed {

/// Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011), keyed by (seed, epoch,
/// index): the same sample draws the same numbers in any worker, in any order, after any resume. Threads: a value; one
/// owner.
class INFEED_API Philox {
 public:
  Philox(std::uint64_t seed, std::uint64_t epoch, std::uint64_t index) noexcept;

  /// Next 32 random bits.
  std::uint32_t next_u32() noexcept;
  std::uint64_t next_u64() noexcept;
  /// Uniform in [0, 1), 53 bits.
  double uniform() noexcept;
  /// Uniform in [low, high).
  double uniform(double low, double high) noexcept { return low + (high - low) * uniform(); }
  /// Uniform integer in [0, bound), without bias; bound > 0.
  std::uint64_t below(std::uint64_t bound) noexcept;
  /// True with probability p.
  bool bernoulli(double p) noexcept { return uniform() < p; }

  /// The raw block function, to test against the published vectors.
  [[nodiscard]] static std::array<std::uint32_t, 4> block(std::array<std::uint32_t, 4> counter,
                                                          std::array<std::uint32_t, 2> key) noexcept;

 private:
  std::array<std::uint32_t, 4> counter_;
  std::array<std::uint32_t, 2> key_;
  std::array<std::uint32_t, 4> buffer_{};
  int used_ = 4;
};

/// PyTorch's CPU generator: mt19937, with the results of torch.randperm, Tensor.random_, torch.randint and
/// torch.multinomial bit for bit (torch 2.13, CPU). Throws ConfigError on impossible arguments. Threads: one owner.
class INFEED_API TorchGenerator {
 public:
  explicit TorchGenerator(std::uint64_t seed = 67280421310721ULL);  // torch's default seed

  /// Begins anew, as torch.Generator.manual_seed: only the low 32 bits count.
  void manual_seed(std::uint64_t seed);
  [[nodiscard]] std::uint64_t initial_seed() const noexcept { return seed_; }

  /// False for bytes of something else that were copied here.
  [[nodiscard]] bool is_sound() const noexcept { return next_ >= 0 && next_ <= static_cast<int>(state_.size()); }

  std::uint32_t random() noexcept;    ///< next 32 bits
  std::uint64_t random64() noexcept;  ///< next 64 bits: first draw is the high half, as CPUGeneratorImpl
  double uniform_double() noexcept;   ///< uniform [0, 1) as torch draws doubles (53 bits)
  float uniform_float() noexcept;     ///< uniform [0, 1) as torch draws floats (24 bits)

  /// Passes over `count` draws of random(), without looking at them.
  void discard(std::uint64_t count) noexcept;

  /// torch.randperm(n, generator=g), int64.
  [[nodiscard]] std::vector<std::int64_t> randperm(std::int64_t n);
  /// The same values into memory of the caller, n = out.size(): half the memory traffic as int32.
  void randperm(std::span<std::int64_t> out) noexcept;
  void randperm(std::span<std::int32_t> out);
  /// Passes over the draws of one randperm(n), without making it.
  void discard_randperm(std::int64_t n) noexcept;
  /// torch.empty((), dtype=int64).random_(generator=g).item(): what DataLoader draws as a base seed.
  [[nodiscard]] std::int64_t random_int64();
  /// torch.randint(low, high, (n,), generator=g).
  [[nodiscard]] std::vector<std::int64_t> randint(std::int64_t low, std::int64_t high, std::int64_t n);
  /// The same values into memory of the caller, n = out.size().
  void randint(std::int64_t low, std::int64_t high, std::span<std::int64_t> out);
  /// Passes over the draws of one randint(low, high, n).
  void discard_randint(std::int64_t low, std::int64_t high, std::uint64_t n) noexcept;
  /// torch.multinomial(weights, n, replacement, generator=g), weights float64.
  [[nodiscard]] std::vector<std::int64_t> multinomial(std::span<const double> weights, std::int64_t n,
                                                      bool replacement);

 private:
  void refill() noexcept;
  void fill(std::span<std::uint32_t> out) noexcept;
  template <typename Index>
  void shuffle(std::span<Index> out) noexcept;
  template <typename Index>
  void shuffle_forward(std::span<Index> out) noexcept;
  template <typename Index>
  void shuffle_inside_out(std::span<Index> out) noexcept;

  std::uint64_t seed_ = 0;
  std::array<std::uint32_t, 624> state_{};
  int next_ = 624;
};

}  // namespace infeed
