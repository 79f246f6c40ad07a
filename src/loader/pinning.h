#pragma once
/// Page-locked batches for a trainer that copies them itself, in streams of its own.
///
///   next()  ─▶ pin(): page-lock ─▶ user: copies queued in any stream ─▶ drop ─▶ dropped_
///   next()  ─▶ look(): record_all(event) behind all streams ─▶ leaving_ ─▶ event passed ─▶ the extent is free
///
/// Nobody tells which streams read a batch, so the event covers all that was queued on the device before it.

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "infeed/batch/batch.h"
#include "infeed/device/device.h"
#include "loader/registrations.h"

namespace infeed {

/// Outlives its loader as long as the user holds batches. Threads: pin(), look() and wait() one at a time; batches may be
/// dropped on any.
class Pinning : public std::enable_shared_from_this<Pinning> {
 public:
  enum class Guard : bool {
    kOn,
    kOffForTests,  ///< a dropped batch is free at once: what the guard is there for happens
  };

  Pinning(std::shared_ptr<Device> device, int max_registrations, Guard guard = Guard::kOn);
  Pinning(const Pinning&) = delete;
  Pinning& operator=(const Pinning&) = delete;

  /// The batch, page-locked, with an owner that keeps its memory until the device is past it. Where memory is a private
  /// copy or cannot be locked, copies of it block by themselves: the batch comes back as it is.
  [[nodiscard]] Batch pin(Batch host);
  /// Marks what was dropped since the last time, and frees what the device is past; true if something was freed. Does not
  /// wait.
  bool look() noexcept;
  /// The same, but waits until something is free; false if nothing can be.
  bool wait();
  /// Page-locked ranges, and their bytes. On any thread.
  [[nodiscard]] int registrations() const noexcept { return registrations_.count(); }
  [[nodiscard]] std::uint64_t registered_bytes() const noexcept { return registrations_.bytes(); }
  /// The loader is gone: waits for the device, and unlocks what nobody holds.
  void close() noexcept;

 private:
  struct Lease;
  struct Leaving {
    std::unique_ptr<DeviceEvent> passed;
    std::vector<Batch> batches;
  };
  void take_back(Batch host) noexcept;
  void drain() noexcept;

  const std::shared_ptr<Device> device_;
  const Guard guard_;
  const std::uint64_t home_;  ///< process_generation() of the maker
  Registrations registrations_;
  std::deque<Leaving> leaving_;  ///< of the thread that calls look()

  std::mutex mutex_;  ///< all below
  std::vector<Batch> dropped_;
  int held_ = 0;  ///< by the user
  bool closed_ = false;
};

}  // namespace infeed
