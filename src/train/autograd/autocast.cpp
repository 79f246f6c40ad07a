#include "train/autograd/autocast.h"

#include <unordered_map>

#include "infeed/train/autograd/grad_mode.h"
#include "train/tensor/check.h"

namespace infeed::amp {
namespace {

struct Weight {
  Tensor original;  // keeps its address from being another's
  std::uint32_t version;
  Tensor converted;
};

struct Mode {
  AutocastState state;
  int depth = 0;  // modes that live
  std::unordered_map<const void*, Weight> weights;
};

Mode& mode() noexcept {
  thread_local Mode mode;
  return mode;
}

// Only what backward() can reach through the kept one: under no_grad it would lose its gradient for later uses.
bool is_weight(const Tensor& x, DType dtype) {
  return mode().state.cache_enabled && dtype != DType::kFloat32 && x.dtype() == DType::kFloat32 && grad_enabled() &&
         x.requires_grad() && x.is_leaf() && !x.is_view();
}

}  // namespace

const AutocastState& autocast_state() noexcept { return mode().state; }

Tensor converted(const Tensor& x, DType dtype) {
  if (!x.defined() || !is_floating_point(x.dtype()) || x.dtype() == DType::kFloat64 || x.dtype() == dtype ||
      x.is_meta())
    return x;
  if (!is_weight(x, dtype)) return x.to(dtype);
  Weight& kept = mode().weights[x.id()];
  if (!kept.converted.defined() || kept.version != x.version() || kept.converted.dtype() != dtype)
    kept = {x, x.version(), x.to(dtype)};
  return kept.converted;
}

Paused::Paused() noexcept { mode().state.enabled = false; }
Paused::~Paused() { mode().state.enabled = true; }

AutocastMode::AutocastMode(DType dtype, bool enabled, bool cache_enabled) : before_(mode().state) {
  require<TypeError>(dtype == DType::kBFloat16 || dtype == DType::kFloat16,
                     "autocast on the CPU runs in bfloat16 or float16, not in {}", to_string(dtype));
  mode().state = {enabled, dtype, cache_enabled};
  ++mode().depth;
}

AutocastMode::~AutocastMode() {
  mode().state = before_;
  if (--mode().depth == 0) mode().weights.clear();
}

}  // namespace infeed::amp
