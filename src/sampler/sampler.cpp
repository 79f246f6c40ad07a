#include "infeed/sampler/sampler.h"

#include <algorithm>
#include <array>

namespace infeed {

Sampler::~Sampler() = default;
BatchSampler::~BatchSampler() = default;

bool Sampler::save_at(std::int64_t /*position*/, State& /*state*/) const { return false; }

std::int64_t Sampler::skip(std::int64_t count) {
  std::array<std::int64_t, 1024> dropped;
  std::int64_t done = 0;
  while (done < count) {
    const auto ask = static_cast<std::size_t>(std::min<std::int64_t>(count - done, dropped.size()));
    const std::size_t got = next(std::span(dropped).first(ask));
    done += static_cast<std::int64_t>(got);
    if (got < ask) break;
  }
  return done;
}

}  // namespace infeed
