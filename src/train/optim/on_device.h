#pragma once
/// Steps of optimizers on a device: one kernel a parameter. float32 only.

#include <span>
#include <vector>

#include "infeed/train/optim/fused.h"
#include "train/kernels/fused.h"

namespace infeed::optim {

/// True if the first parameter does; the others must then, too.
template <std::size_t N>
[[nodiscard]] bool lies_on_device(const std::vector<kernels::Row<N>>& rows) {
  return !rows.empty() && is_on_device(rows.front()[0]);
}

void step_on_device(std::span<const kernels::Row<3>> rows, std::span<const SgdRow> from, const SGDOptions& options);
void step_on_device(std::span<const kernels::Row<5>> rows, std::span<const AdamRow> from, const AdamOptions& options);

}  // namespace infeed::optim
