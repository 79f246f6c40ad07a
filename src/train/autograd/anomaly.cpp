#include "infeed/train/autograd/anomaly.h"

#include <atomic>
#include <utility>

namespace infeed {
namespace {

std::atomic<bool> detecting{false};
std::atomic<bool> checking_nan{true};

std::function<std::string()>& trace_source() {
  static auto* const source = new std::function<std::string()>;  // leaked: late nodes may ask
  return *source;
}

}  // namespace

void set_detect_anomaly(bool enabled, bool check_nan) noexcept {
  detecting.store(enabled, std::memory_order_relaxed);
  checking_nan.store(check_nan, std::memory_order_relaxed);
}
bool is_anomaly_enabled() noexcept { return detecting.load(std::memory_order_relaxed); }
bool is_anomaly_check_nan_enabled() noexcept { return checking_nan.load(std::memory_order_relaxed); }

void set_trace_source(std::function<std::string()> source) { trace_source() = std::move(source); }
std::string forward_trace() { return trace_source() ? trace_source()() : "(no trace source is set)"; }

}  // namespace infeed
