#include "dataset/copy_row.h"

#include <cstring>

namespace infeed {
namespace {

template <typename Item>
std::byte* copy_items(std::byte* out, const std::byte* in, std::int64_t count, std::int64_t step) noexcept {
  for (std::int64_t i = 0; i < count; ++i, out += sizeof(Item), in += step) std::memcpy(out, in, sizeof(Item));
  return out;
}

/// Innermost dimension: `step` bytes from item to item.
std::byte* copy_run(std::byte* out, const std::byte* in, std::int64_t count, std::int64_t step, std::size_t item) {
  if (step == static_cast<std::int64_t>(item)) {
    std::memcpy(out, in, static_cast<std::size_t>(count) * item);
    return out + static_cast<std::size_t>(count) * item;
  }
  switch (item) {
    case 1: return copy_items<std::uint8_t>(out, in, count, step);
    case 2: return copy_items<std::uint16_t>(out, in, count, step);
    case 4: return copy_items<std::uint32_t>(out, in, count, step);
    default: return copy_items<std::uint64_t>(out, in, count, step);
  }
}

std::byte* copy_dim(std::byte* out, const std::byte* in, const ArrayView& view, int dim) noexcept {
  const std::size_t item = itemsize(view.dtype);
  const std::int64_t step = view.strides[dim] * static_cast<std::int64_t>(item);
  if (dim == view.shape.ndim() - 1) return copy_run(out, in, view.shape[dim], step, item);
  for (std::int64_t i = 0; i < view.shape[dim]; ++i) out = copy_dim(out, in + i * step, view, dim + 1);
  return out;
}

}  // namespace

void copy_strided(std::byte* out, const ArrayView& in) noexcept {
  if (in.shape.empty())
    std::memcpy(out, in.data, itemsize(in.dtype));
  else if (in.numel() > 0)
    copy_dim(out, in.data, in, 0);
}

}  // namespace infeed
