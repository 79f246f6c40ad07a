#include "dataset/copy_row.h"

#include <cstring>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace infeed {
namespace {

#ifdef __SSE2__
void stream_bytes(std::byte* out, const std::byte* in, std::size_t nbytes) noexcept {
  const std::size_t head = (16 - reinterpret_cast<std::uintptr_t>(out) % 16) % 16;
  std::memcpy(out, in, head);
  out += head;
  in += head;
  nbytes -= head;
  const std::size_t lines = nbytes / 64;
  for (std::size_t i = 0; i < lines; ++i, out += 64, in += 64) {
    const auto* from = reinterpret_cast<const __m128i*>(in);
    auto* to = reinterpret_cast<__m128i*>(out);
    const __m128i a = _mm_loadu_si128(from), b = _mm_loadu_si128(from + 1);
    const __m128i c = _mm_loadu_si128(from + 2), d = _mm_loadu_si128(from + 3);
    _mm_stream_si128(to, a);
    _mm_stream_si128(to + 1, b);
    _mm_stream_si128(to + 2, c);
    _mm_stream_si128(to + 3, d);
  }
  std::memcpy(out, in, nbytes % 64);
  _mm_sfence();  // streaming stores are not ordered by the release store that publishes the row
}
#else
void stream_bytes(std::byte* out, const std::byte* in, std::size_t nbytes) noexcept { std::memcpy(out, in, nbytes); }
#endif

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

void copy_bytes(std::byte* out, const std::byte* in, std::size_t nbytes) noexcept {
  if (nbytes >= kStreamBytes)
    stream_bytes(out, in, nbytes);
  else if (nbytes > 0)
    std::memcpy(out, in, nbytes);
}

void copy_strided(std::byte* out, const ArrayView& in) noexcept {
  if (in.shape.empty())
    std::memcpy(out, in.data, itemsize(in.dtype));
  else if (in.numel() > 0)
    copy_dim(out, in.data, in, 0);
}

}  // namespace infeed
