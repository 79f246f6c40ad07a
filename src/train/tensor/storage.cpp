#include "infeed/train/tensor/storage.h"

#include <string_view>
#include <utility>

#include "train/tensor/check.h"
#include "train/tensor/device_memory.h"

namespace infeed {

Storage::Storage(std::size_t bytes, Allocator& allocator)
    : data_(allocator.allocate(bytes)), bytes_(bytes), allocator_(&allocator) {}

Storage::Storage(std::byte* data, std::size_t bytes, std::shared_ptr<void> owner)
    : data_(data), bytes_(bytes), owner_(std::move(owner)) {}

Storage::Storage(std::size_t bytes, std::shared_ptr<DeviceMemory> memory) : Storage(bytes, *memory) {
  device_ = memory->id();
  memory_ = std::move(memory);
}

Storage::Storage(std::byte* data, std::size_t bytes, std::shared_ptr<void> owner, std::shared_ptr<DeviceMemory> memory)
    : Storage(data, bytes, std::move(owner)) {
  device_ = memory->id();
  memory_ = std::move(memory);
}

Storage::~Storage() {
  if (allocator_ != nullptr) allocator_->deallocate(data_, bytes_);
}

void Storage::refuse(const char* asker) const {
  const std::string_view name = asker;
  throw NotImplementedError(
      fmt::format("{} has no kernel for tensors on {}, and the host cannot read them. Take .cpu() first; or, where its "
                  "other tensors lie on cpu, move them to {}.",
                  name.starts_with("operator") ? "this operation" : name, device_name(device_), device_name(device_)));
}

}  // namespace infeed
