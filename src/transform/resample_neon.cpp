#include <arm_neon.h>

#include <cstring>

#include "transform/resample.h"

// Every 64-bit ARM has these instructions: nothing is asked at run time.

namespace infeed {
namespace {

using Byte = std::uint8_t;

constexpr int kLanes = 16;  // samples a step of the vertical passes

// Sixteen sums of one channel.
struct Sums {
  int32x4_t part[4];

  explicit Sums(std::int32_t begin) {
    for (int32x4_t& four : part) four = vdupq_n_s32(begin);
  }
  void add(uint8x16_t samples, std::int16_t weight) {
    const int16x8_t low = vreinterpretq_s16_u16(vmovl_u8(vget_low_u8(samples)));
    const int16x8_t high = vreinterpretq_s16_u16(vmovl_high_u8(samples));
    part[0] = vmlal_n_s16(part[0], vget_low_s16(low), weight);
    part[1] = vmlal_high_n_s16(part[1], low, weight);
    part[2] = vmlal_n_s16(part[2], vget_low_s16(high), weight);
    part[3] = vmlal_high_n_s16(part[3], high, weight);
  }
  void store(int32x4_t right, std::int16_t* out) const {
    const auto two = [&](int i) {
      return vmovn_high_s32(vmovn_s32(vshlq_s32(part[i], right)), vshlq_s32(part[i + 1], right));
    };
    vst1q_s16(out, two(0));
    vst1q_s16(out + 8, two(2));
  }
};

void vertical(const RowTaps& rows, Planes<std::int16_t> out) {
  const int drop = rows.shift - kPlaneBits;
  const int32x4_t right = vdupq_n_s32(-drop);
  for (int x = 0; x < rows.width; x += kLanes) {
    Sums sums[3] = {Sums(1 << (drop - 1)), Sums(1 << (drop - 1)), Sums(1 << (drop - 1))};
    const Byte* row = rows.pixels + std::ptrdiff_t{4} * x;
    for (int j = 0; j < rows.taps; ++j, row += rows.stride) {
      const uint8x16x4_t pixels = vld4q_u8(row);
      for (int c = 0; c < 3; ++c) sums[c].add(pixels.val[c], rows.weights[j]);
    }
    for (int c = 0; c < 3; ++c) sums[c].store(right, out.row(c) + x);
  }
}

void vertical_plane(const RowTaps& rows, std::int32_t offset, std::int16_t* out) {
  const int drop = rows.shift - kPlaneBits;
  const int32x4_t right = vdupq_n_s32(-drop);
  for (int x = 0; x < rows.width; x += kLanes) {
    Sums sums((1 << (drop - 1)) + offset);
    const Byte* row = rows.pixels + x;
    for (int j = 0; j < rows.taps; ++j, row += rows.stride) sums.add(vld1q_u8(row), rows.weights[j]);
    sums.store(right, out + x);
  }
}

// Four outputs a step, four taps of each at a time; the sums of four products are added up in pairs.
template <int kChannels, int kQuads>  // kQuads of taps; 0: any number
void horizontal_quads(const TapTable& table, Planes<const std::int16_t> in, Planes<std::int32_t> out) {
  const int quads = kQuads > 0 ? kQuads : table.stride / 4;
  const std::ptrdiff_t stride = quads * 4;
  const std::int16_t* weights = table.weights.data();
  const std::int32_t* start = table.start.data();
  for (int i = 0; i < table.outputs; i += 4, start += 4, weights += 4 * stride) {
    int32x4_t sums[kChannels][4];
    for (int q = 0; q < quads; ++q) {
      for (int k = 0; k < 4; ++k) {
        const int16x4_t weight = vld1_s16(weights + k * stride + 4 * q);
        for (int c = 0; c < kChannels; ++c) {
          const int16x4_t taps = vld1_s16(in.row(c) + start[k] + 4 * q);
          sums[c][k] = q == 0 ? vmull_s16(taps, weight) : vmlal_s16(sums[c][k], taps, weight);
        }
      }
    }
    for (int c = 0; c < kChannels; ++c)
      vst1q_s32(out.row(c) + i, vpaddq_s32(vpaddq_s32(sums[c][0], sums[c][1]), vpaddq_s32(sums[c][2], sums[c][3])));
  }
}

template <int kChannels>
void horizontal(const TapTable& table, Planes<const std::int16_t> in, Planes<std::int32_t> out) {
  if (table.stride == 4) return horizontal_quads<kChannels, 1>(table, in, out);
  if (table.stride == 8) return horizontal_quads<kChannels, 2>(table, in, out);
  return horizontal_quads<kChannels, 0>(table, in, out);
}

void colour(const ColourRow& row, Planes<std::int32_t> sums) {
  const int32x4_t luma = vdupq_n_s32(-row.luma_drop), chroma = vdupq_n_s32(-row.chroma_drop);
  const int32x4_t half = vdupq_n_s32(1 << (row.chroma_drop - 1));
  const int32x4_t zero = vdupq_n_s32(0), most = vdupq_n_s32(kMaxColour);
  for (int i = 0; i < row.width; i += 4) {
    const int32x4_t y = vshlq_s32(vld1q_s32(sums.row(0) + i), luma);
    const int32x4_t cb = vshlq_s32(vaddq_s32(vld1q_s32(sums.row(1) + i), half), chroma);
    const int32x4_t cr = vshlq_s32(vaddq_s32(vld1q_s32(sums.row(2) + i), half), chroma);
    const auto put = [&](int c, int32x4_t level) {
      vst1q_s32(sums.row(c) + i, vminq_s32(vmaxq_s32(level, zero), most));
    };
    put(0, vmlaq_n_s32(y, cr, kCrToR));
    put(1, vmlaq_n_s32(vmlaq_n_s32(y, cb, kCbToG), cr, kCrToG));
    put(2, vmlaq_n_s32(y, cb, kCbToB));
  }
}

void split(const Byte* pixels, int width, bool flip, Planes<std::int32_t> out) {
  const auto put = [&](int x, const uint8x16x4_t& four) {
    for (int c = 0; c < 3; ++c) {
      const uint16x8_t low = vmovl_u8(vget_low_u8(four.val[c])), high = vmovl_high_u8(four.val[c]);
      std::int32_t* to = out.row(c) + x;
      vst1q_s32(to, vreinterpretq_s32_u32(vmovl_u16(vget_low_u16(low))));
      vst1q_s32(to + 4, vreinterpretq_s32_u32(vmovl_high_u16(low)));
      vst1q_s32(to + 8, vreinterpretq_s32_u32(vmovl_u16(vget_low_u16(high))));
      vst1q_s32(to + 12, vreinterpretq_s32_u32(vmovl_high_u16(high)));
    }
  };
  if (!flip) {
    for (int x = 0; x < width; x += kLanes) put(x, vld4q_u8(pixels + std::ptrdiff_t{4} * x));  // rows are padded
    return;
  }
  int x = 0;
  for (; x + kLanes <= width; x += kLanes) {
    uint8x16x4_t four = vld4q_u8(pixels + std::ptrdiff_t{4} * (width - x - kLanes));
    for (uint8x16_t& plane : four.val) plane = vrev64q_u8(vextq_u8(plane, plane, 8));
    put(x, four);
  }
  for (; x < width; ++x)
    for (int c = 0; c < 3; ++c) out.row(c)[x] = pixels[std::ptrdiff_t{4} * (width - 1 - x) + c];
}

// --- emit ---------------------------------------------------------------------------------------------------------

struct Scale {  // one channel's affine map, or the rounding of uint8
  float32x4_t mul, add;
  int32x4_t half, right;
};

Scale scale_of(const Values& values, int c) {
  return {vdupq_n_f32(values.mul[c]), vdupq_n_f32(values.add[c]),
          vdupq_n_s32(values.shift == 0 ? 0 : 1 << (values.shift - 1)), vdupq_n_s32(-values.shift)};
}

float32x4_t to_float(int32x4_t sums, const Scale& s) {
  return vaddq_f32(vmulq_f32(vcvtq_f32_s32(sums), s.mul), s.add);  // -ffp-contract=off keeps them two
}
int32x4_t to_level(int32x4_t sums, const Scale& s) { return vshlq_s32(vaddq_s32(sums, s.half), s.right); }

// Formats: eight values at once, as a register or two; alone, or three channels pixel by pixel. Any address.
struct ToFloat32 {
  static constexpr int kBytes = 4;
  using Eight = float32x4x2_t;
  static Eight of(int32x4_t low, int32x4_t high, const Scale& s) { return {{to_float(low, s), to_float(high, s)}}; }
  static void put(std::byte* to, const Eight& v) {
    vst1q_u8(reinterpret_cast<Byte*>(to), vreinterpretq_u8_f32(v.val[0]));
    vst1q_u8(reinterpret_cast<Byte*>(to) + 16, vreinterpretq_u8_f32(v.val[1]));
  }
  static void put(std::byte* to, const Eight& r, const Eight& g, const Eight& b) {
    auto* out = reinterpret_cast<float*>(to);
    for (int h = 0; h < 2; ++h) vst3q_f32(out + 12 * h, {{r.val[h], g.val[h], b.val[h]}});
  }
};

struct Halves {  // 16-bit formats
  static constexpr int kBytes = 2;
  using Eight = uint16x8_t;
  static void put(std::byte* to, Eight v) { vst1q_u8(reinterpret_cast<Byte*>(to), vreinterpretq_u8_u16(v)); }
  static void put(std::byte* to, Eight r, Eight g, Eight b) {
    vst3q_u16(reinterpret_cast<std::uint16_t*>(to), {{r, g, b}});
  }
};
struct ToFloat16 : Halves {
  static Eight of(int32x4_t low, int32x4_t high, const Scale& s) {
    return vreinterpretq_u16_f16(vcvt_high_f16_f32(vcvt_f16_f32(to_float(low, s)), to_float(high, s)));
  }
};
struct ToBFloat16 : Halves {
  static uint32x4_t rounded(float32x4_t value) {
    const uint32x4_t bits = vreinterpretq_u32_f32(value);
    const uint32x4_t odd = vandq_u32(vshrq_n_u32(bits, 16), vdupq_n_u32(1));
    return vaddq_u32(bits, vaddq_u32(odd, vdupq_n_u32(0x7FFF)));
  }
  static Eight of(int32x4_t low, int32x4_t high, const Scale& s) {
    return vshrn_high_n_u32(vshrn_n_u32(rounded(to_float(low, s)), 16), rounded(to_float(high, s)), 16);
  }
};
struct ToUInt8 {
  static constexpr int kBytes = 1;
  using Eight = uint8x8_t;
  static Eight of(int32x4_t low, int32x4_t high, const Scale& s) {
    const int16x8_t words = vmovn_high_s32(vmovn_s32(to_level(low, s)), to_level(high, s));
    return vmovn_u16(vreinterpretq_u16_s16(words));
  }
  static void put(std::byte* to, Eight v) { vst1_u8(reinterpret_cast<Byte*>(to), v); }
  static void put(std::byte* to, Eight r, Eight g, Eight b) { vst3_u8(reinterpret_cast<Byte*>(to), {{r, g, b}}); }
};

template <typename Format>
typename Format::Eight eight_at(const std::int32_t* sums, const Scale& scale) {
  return Format::of(vld1q_s32(sums), vld1q_s32(sums + 4), scale);
}

template <typename Format>
void emit_chw(Planes<const std::int32_t> sums, const Values& values, const RowTarget& target) {
  constexpr int kStep = 8 * Format::kBytes;
  for (int c = 0; c < 3; ++c) {
    const Scale scale = scale_of(values, c);
    std::byte* to = target.data + c * target.plane_bytes;
    const std::int32_t* in = sums.row(c);
    int i = 0;
    for (; i + 8 <= target.width; i += 8, to += kStep) Format::put(to, eight_at<Format>(in + i, scale));
    if (i == target.width) continue;
    std::byte rest[kStep];
    Format::put(rest, eight_at<Format>(in + i, scale));
    std::memcpy(to, rest, static_cast<std::size_t>(target.width - i) * Format::kBytes);
  }
}

template <typename Format>
void emit_hwc(Planes<const std::int32_t> sums, const Values& values, const RowTarget& target) {
  constexpr int kStep = 24 * Format::kBytes;
  const Scale scales[3] = {scale_of(values, 0), scale_of(values, 1), scale_of(values, 2)};
  const auto put = [&](std::byte* to, int i) {
    Format::put(to, eight_at<Format>(sums.row(0) + i, scales[0]), eight_at<Format>(sums.row(1) + i, scales[1]),
                eight_at<Format>(sums.row(2) + i, scales[2]));
  };
  std::byte* to = target.data;
  int i = 0;
  for (; i + 8 <= target.width; i += 8, to += kStep) put(to, i);
  if (i == target.width) return;
  alignas(16) std::byte rest[kStep];
  put(rest, i);
  std::memcpy(to, rest, static_cast<std::size_t>(3 * (target.width - i)) * Format::kBytes);
}

constexpr Kernels kNEON = {
    .vertical = vertical,
    .vertical_plane = vertical_plane,
    .horizontal = {nullptr, horizontal<1>, horizontal<2>, horizontal<3>},
    .colour = colour,
    .split = split,
    .emit_chw = {emit_chw<ToUInt8>, emit_chw<ToFloat16>, emit_chw<ToBFloat16>, emit_chw<ToFloat32>},
    .emit_hwc = {emit_hwc<ToUInt8>, emit_hwc<ToFloat16>, emit_hwc<ToBFloat16>, emit_hwc<ToFloat32>},
    .fence = [] {},
};

}  // namespace

const Kernels* kernels_neon() noexcept { return &kNEON; }

}  // namespace infeed
