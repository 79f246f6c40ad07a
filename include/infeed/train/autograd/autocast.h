#pragma once
/// Automatic mixed precision: operations on PyTorch's lists for the CPU convert their operands.

#include "infeed/base/dtype.h"
#include "infeed/base/export.h"

namespace infeed::amp {

struct AutocastState {
  bool enabled = false;
  DType dtype = DType::kBFloat16;  ///< or float16
  bool cache_enabled = true;       ///< convert a weight once until the outermost mode ends
};

/// The calling thread's.
[[nodiscard]] INFEED_API const AutocastState& autocast_state() noexcept;

/// Until it is destroyed, on this thread:
///   matmul, mm, bmm, addmm, baddbmm, linear, convolutions, attention   run in `dtype`
///   losses and prod                                                    run in float32
///   all others                                                         run as their operands promote.
/// float64, integers and meta tensors stay as they are. Modes nest; `enabled = false` switches off inside. Parameters and
/// their gradients stay float32: conversions are recorded. A converted weight is kept until the outermost mode ends,
/// unless it is written to in between. Errors: TypeError for another dtype than float16 and bfloat16.
class INFEED_API AutocastMode {
 public:
  explicit AutocastMode(DType dtype = DType::kBFloat16, bool enabled = true, bool cache_enabled = true);
  ~AutocastMode();
  AutocastMode(const AutocastMode&) = delete;
  AutocastMode& operator=(const AutocastMode&) = delete;

 private:
  AutocastState before_;
};

}  // namespace infeed::amp
