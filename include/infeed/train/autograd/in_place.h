#pragma once
/// Any operation in place: checked and recorded as PyTorch does it.

#include <initializer_list>
#include <string_view>
#include <utility>

#include "infeed/base/export.h"
#include "infeed/train/autograd/node.h"
#include "infeed/train/tensor/tensor.h"

namespace infeed {

/// Throws RuntimeError where writing to `self` is not allowed: a leaf that requires grad (or a view of one) under grad
/// mode, an inference tensor outside inference mode, a tensor that repeats elements, a view that cannot be written.
INFEED_API void check_in_place(const Tensor& self);
/// Throws RuntimeError where `input` overlaps `self` other than element by element.
INFEED_API void check_overlap(const Tensor& self, const Tensor& input);

/// self's values as they are now, at its place in the graph: what an operation may save while self changes.
[[nodiscard]] INFEED_API Tensor before_write(const Tensor& self);

/// Writes `result` into self (its dtype must not be of a higher category, its shape must broadcast to self's), counts
/// the write, and lets self take result's place in the graph; a view's base becomes a CopySlices.
INFEED_API void write_result(Tensor& self, const Tensor& result);

/// The same without the values, which are already in self: counts the write, takes over `result`'s place.
INFEED_API void rebase_history(Tensor& self, const Tensor& result);

/// self = op(self). `inputs`: the other tensors that `op` uses.
///
///   in_place(x, {}, [](const Tensor& t) { return exp(t); });                        // x.exp_()
///   in_place(x, {mask}, [&](const Tensor& t) { return masked_fill(t, mask, 0.0); });
template <class Op>
Tensor& in_place(Tensor& self, std::initializer_list<Tensor> inputs, Op&& op) {
  check_in_place(self);
  const bool recorded = needs_graph({self}) || needs_graph(inputs);
  write_result(self, std::forward<Op>(op)(recorded ? before_write(self) : self));
  return self;
}

}  // namespace infeed
