#pragma once
/// The state behind the functions.

#include <unistd.h>

#include <atomic>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "fake_cudart/fake_cudart.h"
#include "infeed/base/error.h"
#include "infeed/device/simulated.h"

namespace infeed::fake {

struct Stream {
  int device = 0;
  std::unique_ptr<DeviceStream> queue;
};

struct Event {
  int device = 0;
  std::unique_ptr<DeviceEvent> mark;
  std::atomic<bool> recorded{false};
};

struct FakeDevice {
  std::shared_ptr<SimulatedDevice> device;
  std::shared_ptr<Stream> default_stream;
  int retained = 0;  ///< users of its primary context; not counted as leaks, since a process keeps it to its end
};

/// Threads: any; the lock is never held while a device works.
class Runtime {
 public:
  static Runtime& instance();

  void reset(const RuntimeOptions& options);
  /// What a call begins with: counts it, and says how it fails, if it does.
  [[nodiscard]] cudaError_t enter(const char* function);
  void add_fault(const Fault& fault);
  /// The error of a fault that is due now.
  [[nodiscard]] cudaError_t take_fault(const std::string& function);
  [[nodiscard]] std::uint64_t calls(const std::string& function);
  cudaError_t complain(const char* function, const std::string& what, cudaError_t error);
  [[nodiscard]] std::vector<std::string> take_complaints();
  [[nodiscard]] std::vector<std::string> leaks();
  [[nodiscard]] std::uint64_t calls_in_children() const noexcept { return *calls_in_children_; }
  [[nodiscard]] bool owned_here() const noexcept { return ::getpid() == owner_; }

  [[nodiscard]] const RuntimeOptions& options() const noexcept { return options_; }
  [[nodiscard]] std::shared_ptr<SimulatedDevice> device(int index);
  [[nodiscard]] std::vector<std::shared_ptr<SimulatedDevice>> devices();
  [[nodiscard]] FakeDevice* context(int index) { return &devices_.at(static_cast<std::size_t>(index)); }
  void retain(int index, int by);
  [[nodiscard]] int index_of(const void* context) const;

  // Handles are the addresses of the objects; null for a handle that is none.
  [[nodiscard]] std::shared_ptr<Stream> stream(cudaStream_t handle, int current);
  cudaStream_t add(std::shared_ptr<Stream> stream);
  [[nodiscard]] bool remove(cudaStream_t handle);
  [[nodiscard]] std::shared_ptr<Event> event(const void* handle);
  cudaEvent_t add(std::shared_ptr<Event> event);
  [[nodiscard]] bool remove(cudaEvent_t handle);

  void add_allocation(void* ptr, int device);
  [[nodiscard]] int device_of(void* ptr);  ///< -1: not allocated
  void remove_allocation(void* ptr);
  [[nodiscard]] bool add_registration(std::uintptr_t begin, std::size_t bytes);  ///< false: shares a page with another
  [[nodiscard]] bool knows_registration(const void* begin);
  void remove_registration(const void* begin);
  void note(const Copy& copy);
  [[nodiscard]] std::vector<Copy> copies();

 private:
  Runtime();

  const ::pid_t owner_ = ::getpid();
  std::atomic<std::uint64_t>* calls_in_children_;  // in memory that a child shares
  RuntimeOptions options_;
  std::mutex mutex_;  // all below
  std::vector<FakeDevice> devices_;
  std::map<const void*, std::shared_ptr<Stream>> streams_;
  std::map<const void*, std::shared_ptr<Event>> events_;
  std::map<void*, int> allocations_;
  std::map<std::uintptr_t, std::size_t> registrations_;
  std::map<std::string, std::uint64_t> counts_;
  std::vector<Fault> faults_;
  std::vector<std::string> complaints_;
  std::vector<Copy> copies_;
  cudaError_t lost_ = cudaSuccess;
};

/// Of the calling thread.
struct Caller {
  cudaError_t last_error = cudaSuccess;
  std::vector<int> contexts;        ///< pushed
  int device = 0;                   ///< cudaSetDevice's; current where nothing is pushed
  cudaStream_t pageable = nullptr;  ///< an asynchronous copy of pageable memory: its stream must be waited for next
  bool waits_for_pageable = false;
  bool in_host_function = false;

  [[nodiscard]] int current() const { return contexts.empty() ? device : contexts.back(); }
  static Caller& instance();
};

/// One call: its name, what it does, and how it ends.
template <typename Work>
cudaError_t perform(const char* function, Work work) noexcept {
  Runtime& runtime = Runtime::instance();
  cudaError_t result = runtime.enter(function);
  if (result == cudaSuccess) {
    try {
      result = work(runtime, Caller::instance());
    } catch (const MemoryError&) {
      result = cudaErrorMemoryAllocation;
    } catch (const std::exception& error) {
      result = runtime.complain(function, error.what(), cudaErrorUnknown);
    }
  }
  if (result != cudaSuccess) Caller::instance().last_error = result;
  return result;
}

}  // namespace infeed::fake
