#pragma once
// A device of LibTorch's in host memory, for one process: copies to it happen late, when something waits for an event
// behind them, so that host memory which was given up early shows.

#include <ATen/EmptyTensor.h>
#include <ATen/core/Tensor.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <c10/core/DeviceType.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <torch/library.h>

#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <set>

namespace infeed::testing {

/// What the device saw.
struct FakeCounts {
  int copies = 0, from_pageable = 0, waits = 0, recorded = 0;
};

class FakeDevice {
 public:
  static FakeDevice& get() {
    static auto* const device = new FakeDevice;  // intentional: LibTorch refers to it to the end
    return *device;
  }
  static at::Device device() { return {at::kPrivateUse1, 0}; }

  FakeCounts counts() {
    const std::lock_guard lock(mutex_);
    return counts_;
  }
  void count(int FakeCounts::*which) {
    const std::lock_guard lock(mutex_);
    ++(counts_.*which);
  }
  void pin(const void* memory, bool pinned) {
    const std::lock_guard lock(mutex_);
    pinned ? (void)pinned_.insert(memory) : (void)pinned_.erase(memory);
  }
  bool is_pinned(const void* memory) {
    const std::lock_guard lock(mutex_);
    return pinned_.contains(memory);
  }
  /// Returns how many jobs the stream ever had.
  std::size_t enqueue(c10::StreamId stream, std::function<void()> job) {
    const std::lock_guard lock(mutex_);
    if (job) jobs_[stream].push_back(std::move(job));
    return done_[stream] + jobs_[stream].size();
  }
  void run(c10::StreamId stream, std::size_t until) {
    const std::lock_guard lock(mutex_);
    for (; done_[stream] < until; ++done_[stream]) {
      jobs_[stream].front()();
      jobs_[stream].pop_front();
    }
  }
  bool has_run(c10::StreamId stream, std::size_t until) {
    const std::lock_guard lock(mutex_);
    return done_[stream] >= until;
  }
  static c10::StreamId& current() {
    thread_local c10::StreamId stream = 0;
    return stream;
  }

 private:
  std::mutex mutex_;
  FakeCounts counts_;
  std::set<const void*> pinned_;
  std::map<c10::StreamId, std::deque<std::function<void()>>> jobs_;
  std::map<c10::StreamId, std::size_t> done_;
};

struct FakeGuard final : c10::impl::DeviceGuardImplInterface {
  struct Event {
    c10::StreamId stream;
    std::size_t until;
  };
  static c10::Stream stream(c10::StreamId id) { return c10::Stream(c10::Stream::UNSAFE, FakeDevice::device(), id); }
  static const Event& of(void* event) { return *static_cast<Event*>(event); }

  c10::DeviceType type() const override { return at::kPrivateUse1; }
  c10::Device exchangeDevice(c10::Device /*to*/) const override { return FakeDevice::device(); }
  c10::Device getDevice() const override { return FakeDevice::device(); }
  void setDevice(c10::Device /*to*/) const override {}
  void uncheckedSetDevice(c10::Device /*to*/) const noexcept override {}
  c10::DeviceIndex deviceCount() const noexcept override { return 1; }
  c10::Stream getStream(c10::Device /*of*/) const override { return stream(FakeDevice::current()); }
  c10::Stream getStreamFromGlobalPool(c10::Device /*of*/, bool /*high*/) const override { return stream(7); }
  c10::Stream exchangeStream(c10::Stream to) const override {
    return stream(std::exchange(FakeDevice::current(), to.id()));
  }
  void record(void** event, const c10::Stream& on, c10::DeviceIndex /*device*/,
              c10::EventFlag /*flag*/) const override {
    if (*event == nullptr) *event = new Event;
    *static_cast<Event*>(*event) = {on.id(), FakeDevice::get().enqueue(on.id(), nullptr)};
  }
  void destroyEvent(void* event, c10::DeviceIndex /*device*/) const noexcept override {
    delete static_cast<Event*>(event);
  }
  void block(void* event, const c10::Stream& /*on*/) const override {
    FakeDevice::get().count(&FakeCounts::waits);
    synchronizeEvent(event);
  }
  bool queryEvent(void* event) const override { return FakeDevice::get().has_run(of(event).stream, of(event).until); }
  void synchronizeEvent(void* event) const override { FakeDevice::get().run(of(event).stream, of(event).until); }
};

/// Memory of the device, or page-locked memory of the host. What is given back is spoilt.
template <bool pinned>
struct FakeAllocator final : c10::Allocator {
  c10::DataPtr allocate(std::size_t nbytes) override {
    auto* memory = static_cast<std::size_t*>(std::malloc(nbytes + 64));
    *memory = nbytes;
    void* data = reinterpret_cast<char*>(memory) + 64;
    if (pinned) FakeDevice::get().pin(data, true);
    return {data, memory, &free_memory, pinned ? at::Device(at::kCPU) : FakeDevice::device()};
  }
  static void free_memory(void* memory) {
    void* data = static_cast<char*>(memory) + 64;
    if (pinned) FakeDevice::get().pin(data, false);
    std::memset(data, 0xEE, *static_cast<std::size_t*>(memory));
    std::free(memory);
  }
  void copy_data(void* to, const void* from, std::size_t count) const override { default_copy_data(to, from, count); }
  static FakeAllocator* get() {
    static auto* const allocator = new FakeAllocator;
    return allocator;
  }
};

struct FakeHooks final : at::PrivateUse1HooksInterface {
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasPrimaryContext(c10::DeviceIndex /*index*/) const override { return true; }
  bool isPinnedPtr(const void* data) const override { return FakeDevice::get().is_pinned(data); }
  at::Allocator* getPinnedMemoryAllocator() const override { return FakeAllocator<true>::get(); }
};

inline at::Tensor fake_empty(c10::IntArrayRef sizes, std::optional<at::ScalarType> dtype,
                             std::optional<at::Layout> /*l*/, std::optional<at::Device> /*d*/,
                             std::optional<bool> /*pin*/, std::optional<at::MemoryFormat> format) {
  return at::detail::empty_generic(sizes, FakeAllocator<false>::get(),
                                   c10::DispatchKeySet(c10::DispatchKey::PrivateUse1), dtype.value_or(at::kFloat),
                                   format);
}

inline at::Tensor fake_empty_strided(c10::IntArrayRef sizes, c10::IntArrayRef strides,
                                     std::optional<at::ScalarType> dtype, std::optional<at::Layout> /*l*/,
                                     std::optional<at::Device> /*d*/, std::optional<bool> /*pin*/) {
  return at::detail::empty_strided_generic(sizes, strides, FakeAllocator<false>::get(),
                                           c10::DispatchKeySet(c10::DispatchKey::PrivateUse1),
                                           dtype.value_or(at::kFloat));
}

/// Dense tensors only. From the device: at once.
inline at::Tensor fake_copy(const at::Tensor& from, const at::Tensor& to, bool non_blocking) {
  void* out = to.mutable_data_ptr();
  const void* in = from.const_data_ptr();
  const std::size_t nbytes = from.nbytes();
  const auto job = [out, in, nbytes] { std::memcpy(out, in, nbytes); };
  if (from.device() == FakeDevice::device()) return job(), to;
  FakeDevice& device = FakeDevice::get();
  device.count(&FakeCounts::copies);
  if (!device.is_pinned(in)) device.count(&FakeCounts::from_pageable);
  const std::size_t until = device.enqueue(FakeDevice::current(), job);
  if (!non_blocking) device.run(FakeDevice::current(), until);
  return to;
}

inline void fake_record_stream(at::Tensor& /*self*/, c10::Stream /*stream*/) {
  FakeDevice::get().count(&FakeCounts::recorded);
}

/// Makes it known to LibTorch, once.
inline void register_fake_device() {
  static const bool done = [] {
    c10::register_privateuse1_backend("fake");
    at::RegisterPrivateUse1HooksInterface(new FakeHooks);
    return true;
  }();
  (void)done;
}

}  // namespace infeed::testing

// LibTorch's macros name its namespace by torch::, which is ours within infeed.
namespace infeed::testing {
C10_REGISTER_GUARD_IMPL(PrivateUse1, FakeGuard);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  library.impl("empty.memory_format", infeed::testing::fake_empty);
  library.impl("empty_strided", infeed::testing::fake_empty_strided);
  library.impl("_copy_from", infeed::testing::fake_copy);
  library.impl("record_stream", infeed::testing::fake_record_stream);
}
