#pragma once
/// The parts of torch.multinomial that WeightedRandomSampler needs one by one.

#include <cstdint>
#include <span>
#include <vector>

namespace infeed {

/// Throws ConfigError for weights that are empty, negative, NaN, infinite, all zero, or whose sum overflows.
/// Returns how many are positive.
std::int64_t check_weights(std::span<const double> weights);

/// Running sums divided by the total, the last one 1: float64 [weights.size()], rounded as torch does.
[[nodiscard]] std::vector<double> cumulative_distribution(std::span<const double> weights);

/// Index of the first entry that is not below `uniform`, in [0, size).
[[nodiscard]] std::int64_t find_category(std::span<const double> cumulative, double uniform) noexcept;

}  // namespace infeed
