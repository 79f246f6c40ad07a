#include "infeed/base/copy.h"

#include <cstdint>
#include <cstring>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace infeed {
namespace {

#ifdef __SSE2__
void stream_bytes(std::byte* out, const std::byte* in, std::size_t nbytes) noexcept {
  const std::size_t head = (64 - reinterpret_cast<std::uintptr_t>(out) % 64) % 64;  // whole lines are written at once
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

}  // namespace

void copy_bytes(std::byte* out, const std::byte* in, std::size_t nbytes) noexcept {
  if (nbytes >= kStreamBytes)
    stream_bytes(out, in, nbytes);
  else if (nbytes > 0)
    std::memcpy(out, in, nbytes);
}

}  // namespace infeed
