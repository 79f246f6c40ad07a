#pragma once
/// What operations on autocast's lists begin with:
///
///   if (amp::is_active()) return amp::lowered(mm, a, b);

#include "infeed/train/autograd/autocast.h"
#include "infeed/train/tensor/tensor.h"

namespace infeed::amp {

[[nodiscard]] inline bool is_active() noexcept { return autocast_state().enabled; }

/// `x` as `dtype`; other than float32 and halves as they are. Weights come from the cache.
[[nodiscard]] Tensor converted(const Tensor& x, DType dtype);

/// Autocast off: what an operation calls has its operands already.
class Paused {
 public:
  Paused() noexcept;
  ~Paused();
  Paused(const Paused&) = delete;
  Paused& operator=(const Paused&) = delete;
};

namespace internal {
inline Tensor operand(const Tensor& x, DType dtype) { return converted(x, dtype); }
template <class Other>
const Other& operand(const Other& other, DType /*dtype*/) {
  return other;  // an operand of the call at hand. NOLINT(bugprone-return-const-ref-from-parameter)
}

template <class Op, class... Args>
Tensor run(DType dtype, Op&& op, const Args&... args) {
  const auto paused = [&](const auto&... operands) {
    const Paused off;
    return op(operands...);
  };
  return paused(operand(args, dtype)...);
}
}  // namespace internal

/// op(args...), its tensors in autocast's dtype.
template <class Op, class... Args>
Tensor lowered(Op&& op, const Args&... args) {
  return internal::run(autocast_state().dtype, op, args...);
}
/// op(args...), its tensors in float32.
template <class Op, class... Args>
Tensor lifted(Op&& op, const Args&... args) {
  return internal::run(DType::kFloat32, op, args...);
}

}  // namespace infeed::amp
