#include "sampler/permutation.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/huge_pages.h"
#include "infeed/base/error.h"

namespace infeed {

void Permutation::allocate() {
  constexpr std::size_t kAlignment = std::size_t{2} << 20;
  const std::size_t bytes = static_cast<std::size_t>(size_) * (narrow() ? 4 : 8);
  const bool large = bytes >= 2 * kAlignment;
  items_.reset(large ? std::aligned_alloc(kAlignment, (bytes + kAlignment - 1) / kAlignment * kAlignment)
                     : std::malloc(std::max<std::size_t>(bytes, 1)));
  if (!items_)
    throw MemoryError(
        fmt::format("the order of {} samples needs {} MiB, which cannot be had. Use FeistelSampler, which "
                    "shuffles in constant memory.",
                    size_, bytes >> 20));
  if (large) advise_huge_pages(items_.get(), bytes);
}

void Permutation::shuffle(TorchGenerator& generator) {
  if (!items_) allocate();
  const auto count = static_cast<std::size_t>(size_);
  if (narrow())
    generator.randperm(std::span(static_cast<std::int32_t*>(items_.get()), count));
  else
    generator.randperm(std::span(static_cast<std::int64_t*>(items_.get()), count));
}

void Permutation::copy(std::int64_t place, std::span<std::int64_t> out) const noexcept {
  const auto count = static_cast<std::int64_t>(out.size());
  if (narrow())
    std::copy_n(static_cast<const std::int32_t*>(items_.get()) + place, count, out.begin());
  else
    std::copy_n(static_cast<const std::int64_t*>(items_.get()) + place, count, out.begin());
}

}  // namespace infeed
