#include "sampler/shard.h"

#include <fmt/format.h>

#include "infeed/base/error.h"
#include "sampler/checkpoint.h"

namespace infeed {

void Shard::check(std::string_view sampler) const {
  check_size(sampler, size);
  if (world_size < 1 || world_size > kMaxWorldSize)
    throw ConfigError(fmt::format("{}: world_size is {}, it must lie in [1, 2^31].", sampler, world_size));
  if (rank < 0 || rank >= world_size)
    throw ConfigError(fmt::format("{}: rank is {}, it must lie in [0, {}) for world_size {}.", sampler, rank,
                                  world_size, world_size));
}

}  // namespace infeed
