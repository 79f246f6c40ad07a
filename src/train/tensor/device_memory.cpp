#include "train/tensor/device_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "infeed/base/error.h"
#include "infeed/device/open.h"
#include "infeed/train/tensor/device.h"
#include "infeed/train/tensor/options.h"

namespace infeed {
namespace {

struct Registry {
  std::mutex mutex;
  std::map<std::pair<DeviceType, std::int32_t>, std::shared_ptr<DeviceMemory>> memories;
};
// Destroyed at exit, while drivers still answer; tensors that live longer own their memory.
Registry& registry() {
  static Registry registry;
  return registry;
}
auto key_of(DeviceId id) { return std::pair(id.type, id.index); }

// CUDA's default stream is where loaders make their batches ready.
std::unique_ptr<DeviceStream> stream_of(Device& device) {
  return device.id().type == DeviceType::kCUDA ? device.borrow_stream(nullptr) : device.create_stream();
}

}  // namespace

std::shared_ptr<DeviceMemory> DeviceMemory::of(DeviceId id) {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  std::shared_ptr<DeviceMemory>& memory = all.memories[key_of(id)];
  if (memory == nullptr) memory = std::make_shared<DeviceMemory>(open_device(device_name(id)));
  return memory;
}

void DeviceMemory::use(std::shared_ptr<Device> device) {
  auto memory = std::make_shared<DeviceMemory>(std::move(device));
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  all.memories[key_of(memory->id())].swap(memory);
}

void DeviceMemory::release(DeviceId id) {
  Registry& all = registry();
  std::shared_ptr<DeviceMemory> gone;
  const std::lock_guard lock(all.mutex);
  if (const auto found = all.memories.find(key_of(id)); found != all.memories.end()) {
    gone = std::move(found->second);
    all.memories.erase(found);
  }
  if (gone) gone->empty_cache();
}

DeviceMemory::DeviceMemory(std::shared_ptr<Device> device)
    : id_(device->id()), device_(std::move(device)), stream_(stream_of(*device_)) {}

DeviceMemory::~DeviceMemory() { empty_cache_locked(); }

std::byte* DeviceMemory::take(std::size_t block_bytes) {
  try {
    return static_cast<std::byte*>(device_->allocate(block_bytes));
  } catch (const MemoryError&) {
    empty_cache_locked();
  }
  try {
    return static_cast<std::byte*>(device_->allocate(block_bytes));
  } catch (const MemoryError& error) {
    throw MemoryError(fmt::format("no memory for a tensor of {} bytes; tensors use {} bytes. Lower batch_size. {}",
                                  block_bytes, stats_.in_use_bytes, error.what()));
  }
}

std::byte* DeviceMemory::allocate(std::size_t bytes) {
  const std::size_t size = CachingAllocator::block_bytes(bytes);
  const std::lock_guard lock(mutex_);
  std::vector<std::byte*>& blocks = free_[size];
  std::byte* block = nullptr;
  if (blocks.empty()) {
    block = take(size);
    ++stats_.misses;
  } else {
    block = blocks.back();
    blocks.pop_back();
    stats_.cached_bytes -= size;
    ++stats_.hits;
  }
  stats_.in_use_bytes += size;
  stats_.peak_in_use_bytes = std::max(stats_.peak_in_use_bytes, stats_.in_use_bytes);
  return block;
}

void DeviceMemory::deallocate(std::byte* block, std::size_t bytes) noexcept {
  const std::size_t size = CachingAllocator::block_bytes(bytes);
  const std::lock_guard lock(mutex_);
  stats_.in_use_bytes -= size;
  stats_.cached_bytes += size;
  free_[size].push_back(block);
}

void DeviceMemory::empty_cache() {
  const std::lock_guard lock(mutex_);
  empty_cache_locked();
}

void DeviceMemory::empty_cache_locked() noexcept {
  for (auto& [size, blocks] : free_) {
    for (std::byte* block : blocks) {
      try {
        device_->free(block);
      } catch (const Error&) {  // intentional: a lost device has lost the memory too
      }
    }
    blocks.clear();
  }
  stats_.cached_bytes = 0;
}

MemoryStats DeviceMemory::stats() const {
  const std::lock_guard lock(mutex_);
  return stats_;
}

void DeviceMemory::copy(void* to, const void* from, std::size_t bytes, CopyDirection direction) const {
  stream_->copy_async(to, from, bytes, direction);
  stream_->synchronize();
}

void use_device(std::shared_ptr<Device> device) { DeviceMemory::use(std::move(device)); }
void release_device(DeviceId id) { DeviceMemory::release(id); }
DeviceStream& device_stream(DeviceId id) { return DeviceMemory::of(id)->stream(); }
void synchronize(DeviceId id) { DeviceMemory::of(id)->stream().synchronize(); }
MemoryStats device_memory_stats(DeviceId id) { return DeviceMemory::of(id)->stats(); }
void empty_device_cache(DeviceId id) { DeviceMemory::of(id)->empty_cache(); }

}  // namespace infeed
