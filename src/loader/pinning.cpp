#include "loader/pinning.h"

#include <algorithm>
#include <utility>

#include "infeed/base/error.h"
#include "infeed/base/log.h"
#include "memory/fork_watch.h"

namespace infeed {

/// Owner of a pinned batch.
struct Pinning::Lease {
  std::shared_ptr<Pinning> pinning;
  Batch host;
  Lease(std::shared_ptr<Pinning> keeper, Batch batch) : pinning(std::move(keeper)), host(std::move(batch)) {}
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;
  ~Lease() { pinning->take_back(std::move(host)); }
};

Pinning::Pinning(std::shared_ptr<Device> device, int max_registrations, Guard guard)
    : device_(std::move(device)),
      guard_(guard),
      home_(process_generation()),
      registrations_(device_, static_cast<std::size_t>(max_registrations)) {
  watch_forks();
}

Batch Pinning::pin(Batch host) {
  if (!registrations_.lock(host)) return host;
  std::vector<NamedArray> arrays = host.arrays();
  std::vector<std::int64_t> indices = host.indices();
  const std::uint64_t epoch = host.epoch();
  const std::uint64_t number = host.number();
  auto lease = std::make_shared<Lease>(shared_from_this(), std::move(host));
  {
    const std::lock_guard lock(mutex_);
    ++held_;
  }
  return {std::move(arrays), std::move(indices), epoch, number, std::move(lease)};
}

// From a lease's end, on any thread.
void Pinning::take_back(Batch host) noexcept {
  if (process_generation() != home_) return;  // the batch knows by itself that it is the parent's
  std::unique_lock lock(mutex_);
  --held_;
  if (guard_ == Guard::kOffForTests) return;
  dropped_.push_back(std::move(host));
  if (!closed_ || held_ > 0) return;
  lock.unlock();
  drain();
}

bool Pinning::look() noexcept {
  bool freed = false;
  try {
    for (; !leaving_.empty() && leaving_.front().passed->query(); freed = true) leaving_.pop_front();
    std::unique_lock lock(mutex_);
    if (dropped_.empty()) return freed;
    Leaving leaving{.passed = nullptr, .batches = std::exchange(dropped_, {})};
    lock.unlock();
    try {
      leaving.passed = device_->create_event();
      device_->record_all(*leaving.passed);
    } catch (const Error&) {
      lock.lock();
      std::move(leaving.batches.begin(), leaving.batches.end(), std::back_inserter(dropped_));
      throw;
    }
    leaving_.push_back(std::move(leaving));
  } catch (const Error& error) {  // a graph is being captured, or the device is lost: the batches are kept
    log(LogLevel::kInfo, std::string("page-locked batches are kept for now: ") + error.what());
  }
  return freed;
}

bool Pinning::wait() {
  if (look()) return true;
  if (leaving_.empty()) return false;
  leaving_.front().passed->synchronize();
  leaving_.pop_front();
  return true;
}

void Pinning::close() noexcept {
  if (process_generation() != home_) return;
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    if (held_ > 0) return;
  }
  drain();
}

// Nobody can queue copies of these batches any more. Locks end before the memory does.
void Pinning::drain() noexcept {
  try {
    const std::unique_ptr<DeviceEvent> passed = device_->create_event();
    device_->record_all(*passed);
    passed->synchronize();
  } catch (const Error&) {  // intentional: a lost device reads nothing
  }
  registrations_.clear();
  leaving_.clear();
  std::unique_lock lock(mutex_);
  const std::vector<Batch> last = std::exchange(dropped_, {});
  lock.unlock();
}

}  // namespace infeed
