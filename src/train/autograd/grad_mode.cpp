#include "infeed/train/autograd/grad_mode.h"

#include <utility>

namespace infeed {
namespace {

thread_local bool enabled = true;

}  // namespace

bool grad_enabled() noexcept { return enabled; }

NoGradGuard::NoGradGuard() noexcept : previous_(std::exchange(enabled, false)) {}
NoGradGuard::~NoGradGuard() { enabled = previous_; }

}  // namespace infeed
