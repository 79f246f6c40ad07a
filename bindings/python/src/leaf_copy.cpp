#include "leaf_copy.h"

#include <cstring>

namespace infeed::python {
namespace {

template <std::size_t kItem>
void copy_items(std::byte* out, const std::byte* in, std::int64_t count, std::int64_t step) noexcept {
  for (std::int64_t i = 0; i < count; ++i, out += kItem, in += step) std::memcpy(out, in, kItem);
}

void copy_run(std::byte* out, const std::byte* in, std::int64_t count, std::int64_t step, std::size_t item) noexcept {
  if (step == static_cast<std::int64_t>(item))
    std::memcpy(out, in, static_cast<std::size_t>(count) * item);
  else if (item == 1)
    copy_items<1>(out, in, count, step);
  else if (item == 2)
    copy_items<2>(out, in, count, step);
  else if (item == 4)
    copy_items<4>(out, in, count, step);
  else if (item == 8)
    copy_items<8>(out, in, count, step);
  else
    for (std::int64_t i = 0; i < count; ++i) std::memcpy(out + static_cast<std::size_t>(i) * item, in + i * step, item);
}

std::byte* copy_dim(std::byte* out, const std::byte* in, std::span<const std::int64_t> shape,
                    std::span<const std::int64_t> strides, std::size_t item) noexcept {
  if (shape.size() == 1) {
    copy_run(out, in, shape[0], strides[0], item);
    return out + static_cast<std::size_t>(shape[0]) * item;
  }
  for (std::int64_t i = 0; i < shape[0]; ++i)
    out = copy_dim(out, in + i * strides[0], shape.subspan(1), strides.subspan(1), item);
  return out;
}

}  // namespace

void copy_strided(std::byte* out, const std::byte* in, std::span<const std::int64_t> shape,
                  std::span<const std::int64_t> strides, std::size_t item) noexcept {
  for (const std::int64_t dim : shape)
    if (dim == 0) return;
  if (shape.empty())
    std::memcpy(out, in, item);
  else
    copy_dim(out, in, shape, strides, item);
}

}  // namespace infeed::python
