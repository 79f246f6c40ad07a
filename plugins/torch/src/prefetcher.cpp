#include "infeed/torch/prefetcher.h"

#include <ATen/ATen.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <c10/util/StringUtil.h>

#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "infeed/base/error.h"

namespace infeed::torch {
namespace {

using Guard = c10::impl::VirtualGuardImpl;

}  // namespace

void check_device(at::Device device, const PrefetchOptions& options) {
  if (options.ahead < 1) throw ConfigError("ahead is 0; the Prefetcher needs at least 1 batch.");
  if (device.is_cpu()) return;
  if (!c10::impl::hasDeviceGuardImpl(device.type()) || Guard(device.type()).deviceCount() <= device.index())
    throw ConfigError(c10::str("LibTorch has no device ", device,
                               " here: its build is without it, or there is no such device or driver. The host works: ",
                               "Prefetcher(source, at::kCPU)."));
}

/// One queue: the thread appends at the back, next() takes from the front.
class CopyLine::State {
 public:
  State(at::Device device, std::size_t ahead, std::function<std::optional<Carried>()> pull)
      : guard_(device.type()),
        device_(device.has_index() ? device : guard_.getDevice()),
        stream_(guard_.getStreamFromGlobalPool(device_)),
        ahead_(ahead),
        pull_(std::move(pull)),
        thread_([this] { run(); }) {}

  ~State() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    room_.notify_all();
    thread_.join();
    for (const Item& item : leaving_) item.copied->synchronize();  // their host memory is read until then
    for (const Item& item : queue_) {
      if (item.copied) item.copied->synchronize();
    }
  }

  std::optional<Carried> next() {
    let_go();
    std::unique_lock lock(mutex_);
    filled_.wait(lock, [this] { return !queue_.empty(); });
    if (queue_.front().last) return std::nullopt;  // stays: the end is the end
    Item item = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    room_.notify_one();
    if (item.error) std::rethrow_exception(item.error);
    const c10::Stream consumer = guard_.getStream(device_);
    item.copied->block(consumer);
    item.carried->each_tensor([&](at::Tensor& tensor) {
      if (tensor.defined()) tensor.record_stream(consumer);  // it was allocated for the copy stream
    });
    std::optional<Carried> carried = std::move(item.carried);
    leaving_.push_back(std::move(item));
    return carried;
  }

 private:
  struct Item {
    std::optional<Carried> carried;
    std::vector<at::Tensor> host;  ///< what the copies read
    std::unique_ptr<c10::Event> copied;
    std::exception_ptr error;
    bool last = false;
  };

  void run() {
    for (bool last = false; !last;) {
      {
        std::unique_lock lock(mutex_);
        room_.wait(lock, [this] { return stopping_ || queue_.size() < ahead_; });
        if (stopping_) return;
      }
      Item item = make();
      last = item.last;
      {
        const std::lock_guard lock(mutex_);
        queue_.push_back(std::move(item));
      }
      filled_.notify_one();
    }
  }

  Item make() noexcept {
    Item item;
    try {
      item.carried = pull_();
      item.last = !item.carried.has_value();
      if (item.carried) copy(item);
    } catch (...) {
      item.error = std::current_exception();
    }
    return item;
  }

  void copy(Item& item) {
    const c10::StreamGuard on(stream_);
    item.carried->each_tensor([&](at::Tensor& tensor) {
      if (!tensor.defined() || tensor.device() == device_) return;
      at::Tensor from = tensor.is_pinned() ? tensor : tensor.pin_memory();
      tensor = from.to(device_, /*non_blocking=*/true);
      item.host.push_back(std::move(from));
    });
    item.copied = std::make_unique<c10::Event>(device_.type());
    item.copied->record(stream_);
  }

  // Host memory whose copy has passed may serve the next batch.
  void let_go() {
    while (!leaving_.empty() && leaving_.front().copied->query()) leaving_.pop_front();
  }

  Guard guard_;
  at::Device device_;
  c10::Stream stream_;
  std::size_t ahead_;
  std::function<std::optional<Carried>()> pull_;
  std::mutex mutex_;
  std::condition_variable filled_, room_;
  std::deque<Item> queue_;
  std::deque<Item> leaving_;  ///< the consumer's: handed out, copies perhaps not done
  bool stopping_ = false;
  std::thread thread_;  // last
};

CopyLine::CopyLine(at::Device device, std::size_t ahead, std::function<std::optional<Carried>()> pull)
    : state_(std::make_unique<State>(device, ahead, std::move(pull))) {}
CopyLine::~CopyLine() = default;

std::optional<Carried> CopyLine::next() { return state_->next(); }

}  // namespace infeed::torch
