#include "exchange/task.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"

namespace infeed {
namespace {

constexpr std::uint64_t kBytes = std::uint64_t{1} << 63;

std::int64_t first_word(std::uint64_t kind, std::size_t count) {
  return static_cast<std::int64_t>(kind | static_cast<std::uint64_t>(count));
}

}  // namespace

void pack_task(std::span<const std::int64_t> indices, std::vector<std::int64_t>& words) {
  words.resize(1 + indices.size());
  words[0] = first_word(0, indices.size());
  std::copy(indices.begin(), indices.end(), words.begin() + 1);
}

void pack_task(std::span<const std::byte> bytes, std::vector<std::int64_t>& words) {
  words.resize(1 + words_of(bytes.size()));
  words.back() = 0;
  words[0] = first_word(kBytes, bytes.size());
  if (!bytes.empty()) std::memcpy(words.data() + 1, bytes.data(), bytes.size());
}

ExchangeTask unpack_task(std::span<const std::int64_t> words) {
  INFEED_CHECK(!words.empty(), "a task without its first word");
  const auto first = static_cast<std::uint64_t>(words[0]);
  const std::size_t count = first & ~kBytes;
  const auto rest = words.subspan(1);
  ExchangeTask task{.is_bytes = (first & kBytes) != 0};
  INFEED_CHECK((task.is_bytes ? words_of(count) : count) == rest.size(), "a task of {} {} in {} words", count,
               task.is_bytes ? "bytes" : "indices", rest.size());
  if (task.is_bytes)
    task.bytes = std::as_bytes(rest).first(count);
  else
    task.indices = rest;
  return task;
}

}  // namespace infeed
