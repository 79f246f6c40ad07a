#include "infeed/train/autograd/grad_mode.h"

namespace infeed {
namespace {

thread_local bool recording = true;
thread_local bool inference = false;

}  // namespace

bool grad_enabled() noexcept { return recording; }
void set_grad_enabled(bool enabled) noexcept { recording = enabled; }
bool is_inference_mode_enabled() noexcept { return inference; }
void set_inference_mode(bool enabled) noexcept { inference = enabled; }

}  // namespace infeed
