#include "batch/scratch.h"

#include <fmt/format.h>

#include <algorithm>
#include <new>

#include "batch/format.h"
#include "infeed/base/error.h"

namespace infeed {
namespace {

constexpr std::size_t kMinChunk = 64 << 10;

}  // namespace

std::byte* Scratch::allocate(std::size_t nbytes) {
  const std::size_t need = align_up(std::max<std::size_t>(nbytes, 1), kAlign);
  if (chunks_.empty() || chunks_.back().size - chunks_.back().used < need) grow(need);
  Chunk& chunk = chunks_.back();
  std::byte* start = chunk.bytes.get() + chunk.used;
  chunk.used += need;
  return start;
}

void Scratch::undo(const std::byte* latest) noexcept {
  chunks_.back().used = static_cast<std::size_t>(latest - chunks_.back().bytes.get());
}

void Scratch::reset() noexcept {
  std::size_t used = 0;
  for (const Chunk& chunk : chunks_) used += chunk.used;
  recent_ = std::max(used, recent_ - recent_ / 8);
  // One chunk of about the right size serves on; several become one at the next allocation.
  if (chunks_.size() > 1 || capacity() > std::max(4 * recent_, kMinChunk)) chunks_.clear();
  for (Chunk& chunk : chunks_) chunk.used = 0;
}

std::size_t Scratch::capacity() const noexcept {
  std::size_t sum = 0;
  for (const Chunk& chunk : chunks_) sum += chunk.size;
  return sum;
}

void Scratch::grow(std::size_t nbytes) {
  const std::size_t size = std::max({nbytes, recent_ + recent_ / 4, capacity(), kMinChunk});
  auto* bytes = static_cast<std::byte*>(::operator new[](size, std::align_val_t{kAlign}, std::nothrow));
  if (bytes == nullptr)
    throw MemoryError(
        fmt::format("a worker's rows need {} more bytes of private memory (it holds {}), the system has "
                    "none. Lower batch_size or num_workers.",
                    size, capacity()));
  chunks_.push_back({std::unique_ptr<std::byte[], Free>(bytes), size, 0});
}

}  // namespace infeed
