#pragma once
/// How a task lies in the index area of its slot.
///
///   word 0            word 1 ...
///   63  62        0
///  | B | count     | count indices, or (B = 1) count bytes, the last word filled up with zeros |

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "infeed/exchange/exchange.h"

namespace infeed {

/// Words that the bytes take.
constexpr std::size_t words_of(std::size_t bytes) { return bytes / 8 + (bytes % 8 != 0 ? 1 : 0); }

/// Fills `words` with word 0 and the task.
void pack_task(std::span<const std::int64_t> indices, std::vector<std::int64_t>& words);
void pack_task(std::span<const std::byte> bytes, std::vector<std::int64_t>& words);
/// The task in `words`, without its number; refers to them. Throws Error where the count does not fit.
[[nodiscard]] ExchangeTask unpack_task(std::span<const std::int64_t> words);

}  // namespace infeed
