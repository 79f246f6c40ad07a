#include "sampler/checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "infeed/base/error.h"

namespace infeed {
namespace {

template <typename T>
void require_same(std::string_view type, std::string_view key, T saved, T ours) {
  if (saved == ours) return;
  throw StateError(
      fmt::format("the state of {} was saved with {} = {}, this one has {}. Make the sampler as it was made "
                  "when the state was saved, or start a new epoch.",
                  type, key, saved, ours));
}

}  // namespace

StateCheck::StateCheck(const State& state, std::string_view type) : state_(state), type_(type) {
  const std::string saved = state.get_string("type");
  if (saved != type) throw StateError(fmt::format("a {} cannot take up the state of a {:.60}.", type, saved));
}

void StateCheck::same(std::string_view key, std::int64_t ours) const {
  require_same(type_, key, state_.get_int(key), ours);
}
void StateCheck::same(std::string_view key, std::uint64_t ours) const {
  require_same(type_, key, state_.get_uint(key), ours);
}
void StateCheck::same(std::string_view key, bool ours) const { require_same(type_, key, state_.get_bool(key), ours); }

std::uint64_t StateCheck::epoch() const { return state_.get_uint("epoch"); }

std::int64_t StateCheck::position(std::string_view key, std::int64_t limit) const {
  const std::int64_t position = state_.get_int(key);
  if (position < 0 || position > limit)
    throw StateError(fmt::format("the state of {} has {} = {}, outside [0, {}].", type_, key, position, limit));
  return position;
}

std::uint64_t fingerprint(std::span<const std::byte> bytes) noexcept {
  std::uint64_t hash = 0xCBF29CE484222325U ^ bytes.size();
  for (std::size_t at = 0; at < bytes.size(); at += sizeof(std::uint64_t)) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data() + at, std::min(sizeof word, bytes.size() - at));
    hash = (hash ^ word) * 0x9E3779B97F4A7C15U;
    hash ^= hash >> 32;
  }
  return hash;
}

void check_size(std::string_view sampler, std::int64_t size) {
  if (size < 0 || size >= std::int64_t{1} << 62)
    throw ConfigError(fmt::format("{} over {} samples: the size must lie in [0, 2^62).", sampler, size));
}

}  // namespace infeed
