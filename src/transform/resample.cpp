#include "transform/resample.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/half.h"

namespace infeed {
namespace {

constexpr int kBlock = 64;  // pixels whose sums stay in registers or the first cache level

void vertical(const RowTaps& rows, Planes<std::int16_t> out) {
  const int drop = rows.shift - kPlaneBits;
  for (int x = 0; x < rows.width; x += kBlock) {
    const int n = std::min(kBlock, rows.width - x) * 4;
    std::int32_t sums[kBlock * 4];
    for (int i = 0; i < n; ++i) sums[i] = 1 << (drop - 1);
    for (int j = 0; j < rows.taps; ++j) {
      const std::uint8_t* row = rows.pixels + j * rows.stride + std::ptrdiff_t{4} * x;
      const std::int16_t weight = rows.weights[j];
      for (int i = 0; i < n; ++i) sums[i] += static_cast<std::int16_t>(row[i]) * weight;  // 16 x 16 -> 32 bits
    }
    for (int c = 0; c < 3; ++c) {
      std::int16_t* plane = out.row(c) + x;
      for (int i = 0; 4 * i < n; ++i) plane[i] = static_cast<std::int16_t>(sums[4 * i + c] >> drop);
    }
  }
}

void vertical_plane(const RowTaps& rows, std::int32_t offset, std::int16_t* out) {
  constexpr int kSamples = 4 * kBlock;
  const int drop = rows.shift - kPlaneBits;
  for (int x = 0; x < rows.width; x += kSamples) {
    const int n = std::min(kSamples, rows.width - x);
    std::int32_t sums[kSamples];
    for (int i = 0; i < n; ++i) sums[i] = (1 << (drop - 1)) + offset;
    for (int j = 0; j < rows.taps; ++j) {
      const std::uint8_t* row = rows.pixels + j * rows.stride + x;
      const std::int16_t weight = rows.weights[j];
      for (int i = 0; i < n; ++i) sums[i] += static_cast<std::int16_t>(row[i]) * weight;
    }
    for (int i = 0; i < n; ++i) out[x + i] = static_cast<std::int16_t>(sums[i] >> drop);
  }
}

template <int kTaps, int kChannels>  // kTaps 0: any number
void horizontal_taps(const TapTable& table, Planes<const std::int16_t> in, Planes<std::int32_t> out) {
  const int taps = kTaps > 0 ? kTaps : table.taps;
  for (int c = 0; c < kChannels; ++c) {
    const std::int16_t* plane = in.row(c);
    const std::int32_t* start = table.start.data();
    const std::int16_t* weights = table.weights.data();
    std::int32_t* sums = out.row(c);
    for (int i = 0; i < table.outputs; ++i, weights += table.stride) {
      std::int32_t sum = 0;
      for (int j = 0; j < taps; ++j) sum += plane[start[i] + j] * weights[j];
      sums[i] = sum;
    }
  }
}

template <int kChannels>
void horizontal(const TapTable& table, Planes<const std::int16_t> in, Planes<std::int32_t> out) {
  switch (table.taps) {
    case 1: return horizontal_taps<1, kChannels>(table, in, out);
    case 2: return horizontal_taps<2, kChannels>(table, in, out);
    case 3: return horizontal_taps<3, kChannels>(table, in, out);
    case 4: return horizontal_taps<4, kChannels>(table, in, out);
    case 5: return horizontal_taps<5, kChannels>(table, in, out);
    default: return horizontal_taps<0, kChannels>(table, in, out);
  }
}

void colour(const ColourRow& row, Planes<std::int32_t> sums) {
  const std::int32_t half = 1 << (row.chroma_drop - 1);
  for (int i = 0; i < row.width; ++i) {
    const std::int32_t y = sums.row(0)[i] >> row.luma_drop;
    const std::int32_t cb = (sums.row(1)[i] + half) >> row.chroma_drop;
    const std::int32_t cr = (sums.row(2)[i] + half) >> row.chroma_drop;
    sums.row(0)[i] = std::clamp(y + kCrToR * cr, 0, kMaxColour);
    sums.row(1)[i] = std::clamp(y + kCbToG * cb + kCrToG * cr, 0, kMaxColour);
    sums.row(2)[i] = std::clamp(y + kCbToB * cb, 0, kMaxColour);
  }
}

void split(const std::uint8_t* pixels, int width, bool flip, Planes<std::int32_t> out) {
  for (int c = 0; c < 3; ++c) {
    std::int32_t* plane = out.row(c);
    for (int i = 0; i < width; ++i) plane[i] = pixels[4 * (flip ? width - 1 - i : i) + c];
  }
}

// One value of each format. Two float operations, not one: fused hardware would round otherwise.
struct ToUInt8 {
  using Type = std::uint8_t;
  static Type at(std::int32_t sum, const Values& values, int) {
    const int half = values.shift == 0 ? 0 : 1 << (values.shift - 1);
    return static_cast<Type>((sum + half) >> values.shift);
  }
};
struct ToFloat32 {
  using Type = float;
  static Type at(std::int32_t sum, const Values& values, int c) {
    return static_cast<float>(sum) * values.mul[c] + values.add[c];
  }
};
struct ToFloat16 {
  using Type = std::uint16_t;
  static Type at(std::int32_t sum, const Values& values, int c) {
    return float_to_float16_portable(ToFloat32::at(sum, values, c));
  }
};
struct ToBFloat16 {
  using Type = std::uint16_t;
  static Type at(std::int32_t sum, const Values& values, int c) {
    return float_to_bfloat16(ToFloat32::at(sum, values, c));
  }
};

// Rows may stand at any address: values go through memcpy.
template <typename Format>
void emit_chw(Planes<const std::int32_t> sums, const Values& values, const RowTarget& target) {
  using T = typename Format::Type;
  for (int c = 0; c < 3; ++c) {
    std::byte* out = target.data + c * target.plane_bytes;
    const std::int32_t* in = sums.row(c);
    for (int i = 0; i < target.width; ++i) {
      const T value = Format::at(in[i], values, c);
      std::memcpy(out + static_cast<std::size_t>(i) * sizeof(T), &value, sizeof(T));
    }
  }
}

template <typename Format>
void emit_hwc(Planes<const std::int32_t> sums, const Values& values, const RowTarget& target) {
  using T = typename Format::Type;
  for (int i = 0; i < target.width; ++i) {
    T pixel[3];
    for (int c = 0; c < 3; ++c) pixel[c] = Format::at(sums.row(c)[i], values, c);
    std::memcpy(target.data + static_cast<std::size_t>(i) * sizeof(pixel), pixel, sizeof(pixel));
  }
}

constexpr Kernels kPortable = {
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

const Kernels* kernels_portable() noexcept { return &kPortable; }

void horizontal_exact(const TapTable& table, int channels, Planes<const std::int16_t> in, Planes<std::int32_t> out) {
  const double unit = std::ldexp(1.0, table.shift);
  for (int c = 0; c < channels; ++c) {
    for (int i = 0; i < table.outputs; ++i) {
      const std::int16_t* taps = in.row(c) + table.start[static_cast<std::size_t>(i)];
      const double* weights = table.exact_weights(i);
      double sum = 0;
      for (int j = 0; j < table.taps; ++j) sum += taps[j] * weights[j];
      out.row(c)[i] = static_cast<std::int32_t>(std::lrint(sum * unit));
    }
  }
}

}  // namespace infeed
