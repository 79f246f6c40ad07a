#include "loader/registrations.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <string>
#include <utility>

#include "base/phrase.h"
#include "infeed/base/error.h"
#include "infeed/base/log.h"

namespace infeed {

Registrations::Registrations(std::shared_ptr<Device> device, std::size_t most)
    : device_(std::move(device)), most_(most), page_(static_cast<std::size_t>(::sysconf(_SC_PAGESIZE))) {}

bool Registrations::lock(std::byte* begin, std::size_t bytes) {
  const auto in_page = static_cast<std::size_t>(reinterpret_cast<std::uintptr_t>(begin) % page_);
  std::byte* first = begin - in_page;
  std::byte* end = first + (in_page + bytes + page_ - 1) / page_ * page_;
  auto next = ranges_.upper_bound(first);
  if (next != ranges_.begin()) {
    auto& [start, range] = *std::prev(next);
    if (end <= start + range.registration.size_bytes()) {
      range.last_use = ++uses_;
      return true;
    }
  }
  return !refused_ && lies_in_arena(first, end) && lock_anew(first, end);
}

bool Registrations::lock(const Batch& host) {
  std::byte* begin = nullptr;
  std::byte* end = nullptr;
  for (const NamedArray& field : host.arrays()) {
    const std::size_t nbytes = field.array.nbytes();
    if (nbytes == 0) continue;
    begin = begin ? std::min(begin, field.array.data) : field.array.data;
    end = std::max(end, field.array.data + nbytes);
  }
  return begin != nullptr && lock(begin, static_cast<std::size_t>(end - begin));
}

// Ranges that overlap belong to the same extent, which no copy uses now: they become one.
bool Registrations::lock_anew(std::byte* begin, std::byte* end) {
  auto at = ranges_.upper_bound(begin);
  if (at != ranges_.begin() && std::prev(at)->first + std::prev(at)->second.registration.size_bytes() > begin) --at;
  while (at != ranges_.end() && at->first < end) {
    begin = std::min(begin, at->first);
    end = std::max(end, at->first + at->second.registration.size_bytes());
    at = ranges_.erase(at);
  }
  if (ranges_.size() >= most_) evict_oldest();
  try {
    ranges_[begin] = {.registration = {device_, begin, static_cast<std::size_t>(end - begin)}, .last_use = ++uses_};
  } catch (const Error& error) {
    refused_ = true;
    ranges_.erase(begin);
    log(LogLevel::kWarning,
        fmt::format("batches are copied from memory that is not page-locked, which is slower: {}. Raise the limit of "
                    "locked memory (ulimit -l), or lower prefetch.",
                    phrase(error.what())));
  }
  recount();
  return !refused_;
}

// The copies in flight use the ranges used last, fewer than `most`.
void Registrations::evict_oldest() noexcept {
  const auto oldest = std::min_element(ranges_.begin(), ranges_.end(), [](const auto& a, const auto& b) {
    return a.second.last_use < b.second.last_use;
  });
  ranges_.erase(oldest);
}

void Registrations::clear() noexcept {
  ranges_.clear();
  recount();
}

void Registrations::recount() noexcept {
  std::uint64_t total = 0;
  for (const auto& [begin, range] : ranges_) total += range.registration.size_bytes();
  count_.store(static_cast<int>(ranges_.size()), std::memory_order_relaxed);
  bytes_.store(total, std::memory_order_relaxed);
}

// The kernel knows: the arena is the only mapping of a memfd that a loader's batches lie in. Asked once.
bool Registrations::lies_in_arena(const std::byte* begin, const std::byte* end) {
  if (arena_begin_ != nullptr) return begin >= arena_begin_ && end <= arena_end_;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    std::uintptr_t from = 0;
    std::uintptr_t to = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx", &from, &to) != 2 || line.find("/memfd:infeed") == std::string::npos)
      continue;
    if (reinterpret_cast<std::uintptr_t>(begin) < from || reinterpret_cast<std::uintptr_t>(end) > to) continue;
    arena_begin_ = reinterpret_cast<const std::byte*>(from);
    arena_end_ = reinterpret_cast<const std::byte*>(to);
    return true;
  }
  return false;
}

}  // namespace infeed
