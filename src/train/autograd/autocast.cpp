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

constinit thread_local AutocastState current;  // apart from the rest: read by every product
constinit thread_local int depth = 0;          // modes that live

std::unordered_map<const void*, Weight>& weights() noexcept {
  thread_local std::unordered_map<const void*, Weight> kept;
  return kept;
}

// Only what backward() can reach through the kept one: under no_grad it would lose its gradient for later uses.
bool is_weight(const Tensor& x, DType dtype) {
  return current.cache_enabled && dtype != DType::kFloat32 && x.dtype() == DType::kFloat32 && grad_enabled() &&
         x.requires_grad() && x.is_leaf() && !x.is_view();
}

}  // namespace

const AutocastState& autocast_state() noexcept { return current; }

Tensor converted(const Tensor& x, DType dtype) {
  if (!x.defined() || !is_floating_point(x.dtype()) || x.dtype() == DType::kFloat64 || x.dtype() == dtype ||
      x.is_meta())
    return x;
  if (!is_weight(x, dtype)) return x.to(dtype);
  Weight& kept = weights()[x.id()];
  if (!kept.converted.defined() || kept.version != x.version() || kept.converted.dtype() != dtype)
    kept = {x, x.version(), x.to(dtype)};
  return kept.converted;
}

Paused::Paused() noexcept { current.enabled = false; }
Paused::~Paused() { current.enabled = true; }

AutocastMode::AutocastMode(DType dtype, bool enabled, bool cache_enabled) : before_(current) {
  require<TypeError>(dtype == DType::kBFloat16 || dtype == DType::kFloat16,
                     "autocast on the CPU runs in bfloat16 or float16, not in {}", to_string(dtype));
  current = {enabled, dtype, cache_enabled};
  ++depth;
}

AutocastMode::~AutocastMode() {
  current = before_;
  if (--depth == 0) weights().clear();
}

}  // namespace infeed::amp
