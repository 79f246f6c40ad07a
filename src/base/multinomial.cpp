#include "base/multinomial.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/huge_pages.h"
#include "infeed/base/error.h"
#include "infeed/base/rng.h"

namespace infeed {
namespace {

using Scored = std::pair<double, std::int64_t>;

// Largest first, NaN before all: the order of torch.topk.
bool before(const Scored& a, const Scored& b) noexcept {
  return (std::isnan(a.first) && !std::isnan(b.first)) || a.first > b.first;
}

// The first `count` in order. The algorithm is chosen as torch chooses it: items of equal score (weights of zero, when
// more are asked than are positive) keep the places that these very algorithms give them.
void select_top(std::vector<Scored>& scored, std::int64_t count) {
  const auto end_of_top = scored.begin() + count;
  if (count * 64 <= static_cast<std::int64_t>(scored.size())) {
    std::partial_sort(scored.begin(), end_of_top, scored.end(), before);
  } else {
    std::nth_element(scored.begin(), end_of_top - 1, scored.end(), before);
    std::sort(scored.begin(), end_of_top - 1, before);
  }
}

// weight / q with q ~ Exp(1), one draw per weight: the `count` largest are a sample without replacement.
std::vector<Scored> race(TorchGenerator& generator, std::span<const double> weights) {
  std::vector<Scored> scored(weights.size());
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const double exponential = -std::log1p(-generator.uniform_double());
    scored[i] = {weights[i] / exponential, static_cast<std::int64_t>(i)};
  }
  return scored;
}

}  // namespace

std::int64_t check_weights(std::span<const double> weights) {
  if (weights.empty()) throw ConfigError("weighted sampling needs at least one weight, but there is none.");
  std::int64_t positive = 0;
  double sum = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (!std::isfinite(weights[i]) || weights[i] < 0)
      throw ConfigError(fmt::format("weight {} is {}: weights must be finite and not negative.", i, weights[i]));
    positive += weights[i] > 0 ? 1 : 0;
    sum += weights[i];
  }
  if (positive == 0)
    throw ConfigError(fmt::format("all {} weights are zero: one at least must be positive.", weights.size()));
  if (!std::isfinite(sum)) throw ConfigError("the sum of the weights overflows float64: scale them down.");
  return positive;
}

std::vector<double> cumulative_distribution(std::span<const double> weights) {
  std::vector<double> sums;
  sums.reserve(weights.size());
  advise_huge_pages(sums.data(), weights.size_bytes());
  double sum = 0;
  for (const double weight : weights) sums.push_back(sum += weight);
  for (double& entry : sums) entry /= sum;
  sums.back() = 1;
  return sums;
}

std::int64_t find_category(std::span<const double> cumulative, double uniform) noexcept {
  return std::lower_bound(cumulative.begin(), cumulative.end(), uniform) - cumulative.begin();
}

std::vector<std::int64_t> TorchGenerator::multinomial(std::span<const double> weights, std::int64_t n,
                                                      bool replacement) {
  const auto size = static_cast<std::int64_t>(weights.size());
  static_cast<void>(check_weights(weights));
  if (n <= 0) throw ConfigError(fmt::format("multinomial of {} samples: ask for at least one.", n));
  if (!replacement && n > size)
    throw ConfigError(
        fmt::format("multinomial of {} samples without replacement from {} weights: ask for no more than "
                    "there are, or set replacement.",
                    n, size));
  std::vector<std::int64_t> out(static_cast<std::size_t>(n));
  if (replacement && n > 1) {
    const std::vector<double> cumulative = cumulative_distribution(weights);
    for (std::int64_t& index : out) index = find_category(cumulative, uniform_double());
    return out;
  }
  std::vector<Scored> scored = race(*this, weights);
  if (n == 1) {
    out[0] = std::min_element(scored.begin(), scored.end(), before)->second;  // torch.argmax: the first of equals
  } else {
    select_top(scored, n);
    std::transform(scored.begin(), scored.begin() + n, out.begin(), [](const Scored& item) { return item.second; });
  }
  return out;
}

}  // namespace infeed
