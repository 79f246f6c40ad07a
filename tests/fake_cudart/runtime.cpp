#include "fake_cudart/runtime.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdio>
#include <new>

namespace infeed::fake {
namespace {

constexpr std::uintptr_t kPage = 4096;

template <typename Map>
auto find_in(const Map& map, const void* handle) {
  const auto found = map.find(handle);
  return found == map.end() ? typename Map::mapped_type{} : found->second;
}

// As at a process's end with the real runtime, but it does not forgive.
__attribute__((destructor)) void check_at_exit() {
  Runtime& runtime = Runtime::instance();
  if (!runtime.owned_here()) return;
  for (const auto& device : runtime.devices()) device->synchronize();
  const std::vector<std::string> complaints = runtime.take_complaints();
  const std::vector<std::string> leaks = runtime.leaks();
  for (const std::string& complaint : complaints) std::fprintf(stderr, "fake cudart: %s\n", complaint.c_str());
  for (const std::string& leak : leaks) std::fprintf(stderr, "fake cudart: never given back: %s\n", leak.c_str());
  if (!complaints.empty() || !leaks.empty()) ::_exit(kExitCode);
  runtime.reset({.devices = 0});  // ends the engines' threads
}

}  // namespace

Runtime& Runtime::instance() {
  static Runtime* const runtime = new Runtime();  // intentional: outlives whoever calls it at exit
  return *runtime;
}

Caller& Caller::instance() {
  thread_local Caller caller;
  return caller;
}

Runtime::Runtime() {
  void* shared = ::mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) throw std::bad_alloc();
  calls_in_children_ = new (shared) std::atomic<std::uint64_t>(0);
  reset({});
}

void Runtime::reset(const RuntimeOptions& options) {
  const std::vector<std::string> left = leaks();
  const std::lock_guard lock(mutex_);
  options_ = options;
  streams_.clear();
  events_.clear();
  allocations_.clear();
  registrations_.clear();
  counts_.clear();
  faults_.clear();
  copies_.clear();
  lost_ = cudaSuccess;
  *calls_in_children_ = 0;
  devices_.clear();
  for (int index = 0; index < options.devices; ++index) {
    const auto device =
        std::make_shared<SimulatedDevice>(SimulatedOptions{.index = index,
                                                           .bandwidth_bytes_per_s = options.bandwidth_bytes_per_s,
                                                           .memory_bytes = options.memory_bytes,
                                                           .unregistered_factor = 2,
                                                           .check_races = true});
    auto stream = std::make_shared<Stream>();
    stream->device = index;
    stream->queue = device->create_stream();
    devices_.push_back({.device = device, .default_stream = std::move(stream)});
  }
  for (const std::string& leak : left) complaints_.push_back("reset: never given back: " + leak);
}

cudaError_t Runtime::enter(const char* function) {
  if (!owned_here()) {
    ++*calls_in_children_;
    return cudaErrorInitializationError;
  }
  Caller& caller = Caller::instance();
  if (caller.in_host_function) return complain(function, "called by a host function", cudaErrorNotPermitted);
  const std::string name = function;
  if (caller.waits_for_pageable && name != "cudaStreamSynchronize") {
    caller.waits_for_pageable = false;
    return complain(function, "an asynchronous copy of memory that is not registered was not waited for",
                    cudaErrorInvalidValue);
  }
  {
    const std::lock_guard lock(mutex_);
    ++counts_[name];
    if (!options_.driver) return cudaErrorInsufficientDriver;
    if (devices_.empty()) return cudaErrorNoDevice;
    if (lost_ != cudaSuccess) return lost_;
  }
  return take_fault(name);
}

cudaError_t Runtime::take_fault(const std::string& function) {
  const std::lock_guard lock(mutex_);
  for (auto fault = faults_.begin(); fault != faults_.end(); ++fault) {
    if (fault->function != function || --fault->nth > 0) continue;
    const cudaError_t error = fault->error;
    if (fault->sticky) lost_ = error;
    faults_.erase(fault);
    return error;
  }
  return cudaSuccess;
}

void Runtime::add_fault(const Fault& fault) {
  const std::lock_guard lock(mutex_);
  faults_.push_back(fault);
}

std::uint64_t Runtime::calls(const std::string& function) {
  const std::lock_guard lock(mutex_);
  return counts_[function];
}

cudaError_t Runtime::complain(const char* function, const std::string& what, cudaError_t error) {
  const std::lock_guard lock(mutex_);
  complaints_.push_back(std::string(function) + ": " + what);
  return error;
}

std::vector<std::string> Runtime::take_complaints() {
  const std::lock_guard lock(mutex_);
  return std::exchange(complaints_, {});
}

std::vector<std::string> Runtime::leaks() {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> found;
  if (lost_ != cudaSuccess) return found;  // nothing can be given back to a lost device
  const auto add = [&found](std::size_t number, const char* what) {
    if (number > 0) found.push_back(std::to_string(number) + " " + what);
  };
  add(streams_.size(), "streams");
  add(events_.size(), "events");
  add(allocations_.size(), "allocations");
  add(registrations_.size(), "registrations");
  return found;
}

std::shared_ptr<SimulatedDevice> Runtime::device(int index) {
  const std::lock_guard lock(mutex_);
  return devices_.at(static_cast<std::size_t>(index)).device;
}

std::vector<std::shared_ptr<SimulatedDevice>> Runtime::devices() {
  const std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<SimulatedDevice>> all;
  for (const FakeDevice& each : devices_) all.push_back(each.device);
  return all;
}

void Runtime::retain(int index, int by) {
  const std::lock_guard lock(mutex_);
  devices_.at(static_cast<std::size_t>(index)).retained += by;
}

int Runtime::index_of(const void* context) const {
  for (std::size_t index = 0; index < devices_.size(); ++index) {
    if (&devices_[index] == context) return static_cast<int>(index);
  }
  return -1;
}

std::shared_ptr<Stream> Runtime::stream(cudaStream_t handle, int current) {
  const std::lock_guard lock(mutex_);
  if (handle == nullptr || handle == cudaStreamLegacy)
    return devices_.at(static_cast<std::size_t>(current)).default_stream;
  return find_in(streams_, handle);
}

cudaStream_t Runtime::add(std::shared_ptr<Stream> stream) {
  const std::lock_guard lock(mutex_);
  void* handle = stream.get();
  streams_[handle] = std::move(stream);
  return static_cast<cudaStream_t>(handle);
}

bool Runtime::remove(cudaStream_t handle) {
  const std::lock_guard lock(mutex_);
  return streams_.erase(handle) > 0;
}

std::shared_ptr<Event> Runtime::event(const void* handle) {
  const std::lock_guard lock(mutex_);
  return find_in(events_, handle);
}

cudaEvent_t Runtime::add(std::shared_ptr<Event> event) {
  const std::lock_guard lock(mutex_);
  void* handle = event.get();
  events_[handle] = std::move(event);
  return static_cast<cudaEvent_t>(handle);
}

bool Runtime::remove(cudaEvent_t handle) {
  const std::lock_guard lock(mutex_);
  return events_.erase(handle) > 0;
}

void Runtime::add_allocation(void* ptr, int device) {
  const std::lock_guard lock(mutex_);
  allocations_[ptr] = device;
}

int Runtime::device_of(void* ptr) {
  const std::lock_guard lock(mutex_);
  const auto found = allocations_.find(ptr);
  return found == allocations_.end() ? -1 : found->second;
}

void Runtime::remove_allocation(void* ptr) {
  const std::lock_guard lock(mutex_);
  allocations_.erase(ptr);
}

bool Runtime::add_registration(std::uintptr_t begin, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  const auto first = [](std::uintptr_t at) { return at / kPage; };
  const bool shares = std::any_of(registrations_.begin(), registrations_.end(), [&](const auto& other) {
    return first(other.first) <= first(begin + bytes - 1) && first(begin) <= first(other.first + other.second - 1);
  });
  if (!shares) registrations_[begin] = bytes;
  return !shares;
}

bool Runtime::knows_registration(const void* begin) {
  const std::lock_guard lock(mutex_);
  return registrations_.count(reinterpret_cast<std::uintptr_t>(begin)) > 0;
}

void Runtime::remove_registration(const void* begin) {
  const std::lock_guard lock(mutex_);
  registrations_.erase(reinterpret_cast<std::uintptr_t>(begin));
}

void Runtime::note(const Copy& copy) {
  const std::lock_guard lock(mutex_);
  copies_.push_back(copy);
}

std::vector<Copy> Runtime::copies() {
  const std::lock_guard lock(mutex_);
  return copies_;
}

// --- for tests ---

void reset(const RuntimeOptions& options) { Runtime::instance().reset(options); }
void fail(const Fault& fault) { Runtime::instance().add_fault(fault); }
std::uint64_t calls(const std::string& function) { return Runtime::instance().calls(function); }
std::vector<Copy> copies() { return Runtime::instance().copies(); }
std::vector<std::string> take_complaints() { return Runtime::instance().take_complaints(); }
std::vector<std::string> leaks() { return Runtime::instance().leaks(); }
std::uint64_t calls_in_children() { return Runtime::instance().calls_in_children(); }

bool in_use(const void* ptr, std::size_t bytes, bool to_write) {
  for (const auto& device : Runtime::instance().devices()) {
    try {
      device->check_host_access({static_cast<const std::byte*>(ptr), bytes}, to_write);
    } catch (const DeviceError&) {
      return true;
    }
  }
  return false;
}

}  // namespace infeed::fake
