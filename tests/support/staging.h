#pragma once
// Verbs for tests of what reaches a device.

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "infeed/device/simulated.h"
#include "infeed/loader/stager.h"
#include "support/epochs.h"
#include "support/gate.h"

namespace infeed::testing {

/// A simulated device that reports races and counts registrations.
class CountingDevice final : public Device {
 public:
  explicit CountingDevice(SimulatedOptions options = {}) : device_(watchful(std::move(options))) {}

  [[nodiscard]] SimulatedDevice& simulated() noexcept { return device_; }
  /// Ranges that are registered now, were so at a time at most, and were made in all.
  [[nodiscard]] int registered() const {
    return locked([this] { return static_cast<int>(ranges_.size()); });
  }
  [[nodiscard]] int most_registered() const {
    return locked([this] { return most_; });
  }
  [[nodiscard]] int registrations_made() const {
    return locked([this] { return made_; });
  }
  [[nodiscard]] std::size_t used_bytes() const { return memory_info().total_bytes - memory_info().free_bytes; }

  [[nodiscard]] DeviceId id() const noexcept override { return device_.id(); }
  [[nodiscard]] std::string name() const override { return device_.name(); }
  [[nodiscard]] DeviceMemoryInfo memory_info() const override { return device_.memory_info(); }
  [[nodiscard]] void* allocate(std::size_t bytes) override { return device_.allocate(bytes); }
  void free(void* ptr) override { device_.free(ptr); }
  void register_host(void* ptr, std::size_t bytes) override {
    device_.register_host(ptr, bytes);
    const std::lock_guard lock(mutex_);
    ranges_[ptr] = bytes;
    ++made_;
    most_ = std::max(most_, static_cast<int>(ranges_.size()));
  }
  void unregister_host(void* ptr) override {
    {
      const std::lock_guard lock(mutex_);
      ranges_.erase(ptr);
    }
    device_.unregister_host(ptr);
  }
  [[nodiscard]] bool is_registered(const void* ptr, std::size_t bytes) const override {
    return device_.is_registered(ptr, bytes);
  }
  [[nodiscard]] std::unique_ptr<DeviceStream> create_stream() override { return device_.create_stream(); }
  [[nodiscard]] std::unique_ptr<DeviceEvent> create_event() override { return device_.create_event(); }
  void record_all(DeviceEvent& event) override { device_.record_all(event); }
  void synchronize() override { device_.synchronize(); }

 private:
  static SimulatedOptions watchful(SimulatedOptions options) {
    options.check_races = true;
    return options;
  }
  template <typename Get>
  int locked(Get get) const {
    const std::lock_guard lock(mutex_);
    return get();
  }

  SimulatedDevice device_;
  mutable std::mutex mutex_;
  std::map<void*, std::size_t> ranges_;
  int most_ = 0;
  int made_ = 0;
};

[[nodiscard]] inline std::span<const std::byte> bytes_of(const ArrayView& array) {
  return {array.data, array.nbytes()};
}

/// checksum() of what lies on the device, read behind the work of `stream`.
[[nodiscard]] inline std::uint64_t checksum(const StagedBatch& staged, DeviceStream& stream) {
  std::vector<std::vector<std::byte>> bytes;
  std::vector<NamedArray> arrays = staged.arrays();
  for (NamedArray& field : arrays) {
    std::vector<std::byte>& copy = bytes.emplace_back(field.array.nbytes() + 1);
    stream.copy_async(copy.data(), field.array.data, field.array.nbytes(), CopyDirection::kDeviceToHost);
    field.array.data = copy.data();
  }
  stream.synchronize();
  return checksum(Batch(std::move(arrays), staged.indices(), staged.epoch(), staged.number(), nullptr));
}

inline std::vector<std::uint64_t> rest_of_epoch(Stager& stager) {
  std::vector<std::uint64_t> sums;
  while (auto staged = stager.next()) sums.push_back(checksum(*staged, stager.compute_stream()));
  return sums;
}

}  // namespace infeed::testing
