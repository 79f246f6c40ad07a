#include "infeed/train/tensor/storage.h"

#include <utility>

namespace infeed {

Storage::Storage(std::size_t bytes, Allocator& allocator)
    : data_(allocator.allocate(bytes)), bytes_(bytes), allocator_(&allocator) {}

Storage::Storage(std::byte* data, std::size_t bytes, std::shared_ptr<void> owner)
    : data_(data), bytes_(bytes), owner_(std::move(owner)) {}

Storage::~Storage() {
  if (allocator_ != nullptr) allocator_->deallocate(data_, bytes_);
}

}  // namespace infeed
