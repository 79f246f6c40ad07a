#include "transform/fused.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "infeed/base/error.h"
#include "transform/resample.h"

namespace infeed {
namespace {

// Results from here on are streamed past the cache: the batch is larger than it, and a copy engine reads it next.
constexpr std::size_t kStreamBytes = 256 * 1024;
constexpr int kHorizontalShift = 16, kVerticalShift = 23;  // 255 << 7 << 16 and 255 << 23 fit an int32

int block_up(int pixels) { return (pixels + kPixelBlock - 1) / kPixelBlock * kPixelBlock; }

EmitFormat format_of(DType dtype) {
  switch (dtype) {
    case DType::kFloat16: return kEmitFloat16;
    case DType::kBFloat16: return kEmitBFloat16;
    case DType::kFloat32: return kEmitFloat32;
    default: return kEmitUInt8;
  }
}

const Kernels& kernels_of(CpuLevel level) {
  const Kernels* kernels = level == CpuLevel::kAVX512 ? kernels_avx512()
                           : level == CpuLevel::kAVX2 ? kernels_avx2()
                           : level == CpuLevel::kNEON ? kernels_neon()
                                                      : kernels_portable();
  if (kernels == nullptr) throw ConfigError(fmt::format("this processor has no {} kernels.", to_string(level)));
  return *kernels;
}

// Sums with `bits` fraction bits to what the chain asks.
Values values_of(const Compose& chain, int bits) {
  Values values;
  values.shift = bits;
  std::array<double, 3> mean = {0, 0, 0}, std = {1, 1, 1};
  for (const ImageOp& op : chain.ops())
    if (const auto* normalize = std::get_if<Normalize>(&op)) mean = normalize->mean, std = normalize->std;
  for (std::size_t c = 0; c < 3; ++c) {
    values.mul[c] = static_cast<float>(1.0 / (255.0 * std[c]) * std::ldexp(1.0, -bits));
    values.add[c] = static_cast<float>(-mean[c] / std[c]);
  }
  return values;
}

void check_output(const Compose& chain, const FusedPlan& plan, const ArrayView& out) {
  const bool chw = chain.layout() == ImageLayout::kCHW;
  const Shape shape = chw ? Shape{3, plan.out_height, plan.out_width} : Shape{plan.out_height, plan.out_width, 3};
  if (out.dtype == chain.dtype() && out.shape == shape && out.is_contiguous() && out.data != nullptr) return;
  throw ConfigError(fmt::format("the transforms make {} {}, contiguous; the row is {} {}{}. Declare the field so.",
                                to_string(chain.dtype()), shape.str(), to_string(out.dtype), out.shape.str(),
                                out.is_contiguous() ? "" : " with gaps"));
}

void check_planes(const FusedPlan& plan, const PlaneWindow& planes) {
  const Window& w = plan.window;
  const SamplePlane& luma = planes.planes[0];
  const bool covers = luma.x0 <= w.x && luma.y0 <= w.y && luma.x0 + luma.width >= w.x + w.width &&
                      luma.y0 + luma.height >= w.y + w.height;
  if (covers && luma.samples != nullptr && (planes.num_planes == 1 || planes.num_planes == 3)) return;
  throw ConfigError(
      fmt::format("the plan needs pixels {} x {} at ({}, {}); of {} planes the first holds {} x {} at ({}, {}).",
                  w.width, w.height, w.x, w.y, planes.num_planes, luma.width, luma.height, luma.x0, luma.y0));
}

// At full scale the pixels must cover the window; a scaled decode rounds it outwards itself.
void check_pixels(const FusedPlan& plan, const PixelWindow& pixels) {
  const Window& w = plan.window;
  const bool covers = pixels.x0 <= w.x && pixels.y0 <= w.y && pixels.x0 + pixels.width >= w.x + w.width &&
                      pixels.y0 + pixels.height >= w.y + w.height;
  const bool some = pixels.pixels != nullptr && pixels.width > 0 && pixels.height > 0;
  if (some && (covers || pixels.scale_num != 8)) return;
  throw ConfigError(fmt::format("the plan needs pixels {} x {} at ({}, {}), decoded were {} x {} at ({}, {}).", w.width,
                                w.height, w.x, w.y, pixels.width, pixels.height, pixels.x0, pixels.y0));
}

// Every output is one pixel of the picture.
bool is_copy(const AxisPlan& axis) {
  const GridRange &out = axis.out, &source = axis.source;
  return axis.resized == source.size && out.begin >= out.valid_begin && out.begin + out.size <= out.valid_end &&
         out.begin + source.begin >= source.valid_begin && out.begin + source.begin + out.size <= source.valid_end;
}

// The rows of a result, one after another.
class RowWriter {
 public:
  RowWriter(const Kernels& kernels, const Compose& chain, const FusedPlan& plan, const ArrayView& out, int bits)
      : values_(values_of(chain, bits)) {
    const bool chw = chain.layout() == ImageLayout::kCHW;
    const std::size_t item = itemsize(out.dtype), row = static_cast<std::size_t>(plan.out_width) * item;
    emit_ = (chw ? kernels.emit_chw : kernels.emit_hwc)[format_of(out.dtype)];
    row_bytes_ = static_cast<std::ptrdiff_t>(chw ? row : 3 * row);
    target_ = {.data = out.data,
               .plane_bytes = static_cast<std::ptrdiff_t>(row) * plan.out_height,
               .width = plan.out_width,
               .stream = chw && out.nbytes() >= kStreamBytes && row % 64 == 0 &&
                         reinterpret_cast<std::uintptr_t>(out.data) % 64 == 0};
  }

  [[nodiscard]] bool streams() const noexcept { return target_.stream; }
  void write(Planes<const std::int32_t> sums) {
    emit_(sums, values_, target_);
    target_.data += row_bytes_;
  }

 private:
  EmitRow emit_ = nullptr;
  Values values_;
  RowTarget target_;
  std::ptrdiff_t row_bytes_ = 0;
};

}  // namespace

struct FusedKernel::Scratch {
  explicit Scratch(CpuLevel level) : kernels(kernels_of(level)) {}

  const Kernels& kernels;
  TapTable across, down;
  TapTable chroma_across, chroma_down;
  std::vector<std::int16_t> between;  // one row between the passes
  std::vector<std::int32_t> sums;     // one row before it is emitted

  Planes<std::int32_t> sums_for(int width) {
    const std::size_t stride = static_cast<std::size_t>(block_up(width));
    if (sums.size() < 3 * stride) sums.resize(3 * stride);
    return {sums.data(), static_cast<std::ptrdiff_t>(stride)};
  }
  Planes<std::int16_t> between_for(int width, int slack) {
    const std::size_t stride = static_cast<std::size_t>(block_up(width)) + static_cast<std::size_t>(slack);
    if (between.size() < 3 * stride) between.resize(3 * stride);
    return {between.data(), static_cast<std::ptrdiff_t>(stride)};
  }

  void copy(const FusedPlan& plan, const PixelWindow& pixels, RowWriter& rows);
  void build_tables(const FusedPlan& plan, const PixelWindow& pixels);
  void resample(const PixelWindow& pixels, RowWriter& rows);
  void build_tables(const FusedPlan& plan, const PlaneWindow& planes);
  void resample(const PlaneWindow& planes, RowWriter& rows);
  void filter_across(const TapTable& table, int channels, Planes<const std::int16_t> in,
                     Planes<std::int32_t> out) const;
};

void FusedKernel::Scratch::copy(const FusedPlan& plan, const PixelWindow& pixels, RowWriter& rows) {
  const Planes<std::int32_t> levels = sums_for(plan.out_width);
  const std::ptrdiff_t x = plan.horizontal.out.begin + plan.horizontal.source.begin - pixels.x0;
  const std::ptrdiff_t y = plan.vertical.out.begin + plan.vertical.source.begin - pixels.y0;
  const std::uint8_t* row = pixels.pixels + y * pixels.stride + 4 * x;
  for (int i = 0; i < plan.out_height; ++i, row += pixels.stride) {
    kernels.split(row, plan.out_width, plan.flip, levels);
    rows.write({levels.data, levels.stride});
  }
}

void FusedKernel::Scratch::build_tables(const FusedPlan& plan, const PixelWindow& pixels) {
  across.build({.axis = plan.horizontal,
                .scale_num = pixels.scale_num,
                .held_begin = pixels.x0,
                .held_size = pixels.width,
                .reversed = plan.flip,
                .max_shift = kHorizontalShift},
               kernels.grouping);
  down.build({.axis = plan.vertical,
              .scale_num = pixels.scale_num,
              .held_begin = pixels.y0,
              .held_size = pixels.height,
              .reversed = false,
              .max_shift = kVerticalShift},
             TapTable::Grouping::kNone);
}

void FusedKernel::Scratch::filter_across(const TapTable& table, int channels, Planes<const std::int16_t> in,
                                         Planes<std::int32_t> out) const {
  if (table.taps > TapTable::kMaxTaps) return horizontal_exact(table, channels, in, out);
  kernels.horizontal[channels](table, in, out);
}

namespace {

// Row `y` of a vertical pass over bytes that lie in rows `stride` apart, `values` of them a column.
RowTaps rows_under(const TapTable& down, int y, const std::uint8_t* bytes, std::ptrdiff_t stride,
                   const TapTable& across, std::ptrdiff_t values = 1) {
  const auto i = static_cast<std::size_t>(y);
  const std::ptrdiff_t row = down.first + down.start[i];
  return {.pixels = bytes + row * stride + values * across.first,
          .stride = stride,
          .weights = down.weights.data() + i * static_cast<std::size_t>(down.stride),
          .taps = down.count[i],
          .shift = down.shift,
          .width = across.extent};
}

RowTaps rows_under(const TapTable& down, int y, const SamplePlane& plane, const TapTable& across) {
  return rows_under(down, y, plane.samples, plane.stride, across);
}

}  // namespace

void FusedKernel::Scratch::resample(const PixelWindow& pixels, RowWriter& rows) {
  const Planes<std::int32_t> out = sums_for(across.outputs);
  const Planes<std::int16_t> filtered = between_for(across.extent, kPlaneSlack + across.stride);
  for (int y = 0; y < down.outputs; ++y) {
    kernels.vertical(rows_under(down, y, pixels.pixels, pixels.stride, across, 4), filtered);
    filter_across(across, 3, {filtered.data, filtered.stride}, out);
    rows.write({out.data, out.stride});
  }
}

void FusedKernel::Scratch::build_tables(const FusedPlan& plan, const PlaneWindow& planes) {
  const SamplePlane &luma = planes.planes[0], &chroma = planes.planes[1];
  across.build({.axis = plan.horizontal,
                .held_begin = luma.x0,
                .held_size = luma.width,
                .reversed = plan.flip,
                .max_shift = kHorizontalShift},
               kernels.grouping);
  down.build({.axis = plan.vertical, .held_begin = luma.y0, .held_size = luma.height, .max_shift = kVerticalShift},
             TapTable::Grouping::kNone);
  const bool colour = planes.num_planes == 3;
  const auto samples_of = [](int pixels) { return (pixels + 1) / 2; };
  if (colour && planes.spread_x == 2)
    chroma_across.build_spread(across, {samples_of(planes.width), chroma.x0, chroma.width}, kernels.grouping);
  if (colour && planes.spread_y == 2)
    chroma_down.build_spread(down, {samples_of(planes.height), chroma.y0, chroma.height}, TapTable::Grouping::kNone);
}

namespace {

// Chroma counts from 128: that much of each weight is taken off, so that padding has no colour.
std::int32_t centred(const RowTaps& rows) {
  return -128 * std::accumulate(rows.weights, rows.weights + rows.taps, std::int32_t{0});
}

// Asks for a plane's rows a little before they are needed: planes that were kept lie in memory, and rows of a few hundred
// bytes end before the processor sees where they lead.
class RowsAhead {
 public:
  RowsAhead(const TapTable& down, const SamplePlane& plane, const TapTable& across)
      : down_(down), plane_(plane), first_column_(across.first), bytes_(across.extent) {}

  void before(int y) {
    const auto i = static_cast<std::size_t>(std::min(y + kRows, down_.outputs - 1));
    const int end = down_.first + down_.start[i] + down_.count[i];
    for (next_ = std::max(next_, down_.first); next_ < end; ++next_) {
      const std::uint8_t* row = plane_.samples + next_ * plane_.stride + first_column_;
      for (int x = 0; x < bytes_; x += 64) __builtin_prefetch(row + x);
    }
  }

 private:
  static constexpr int kRows = 3;  // of the result
  const TapTable& down_;
  const SamplePlane& plane_;
  int first_column_, bytes_, next_ = 0;
};

}  // namespace

void FusedKernel::Scratch::resample(const PlaneWindow& planes, RowWriter& rows) {
  const auto& [luma, cb, cr] = planes.planes;
  const bool gray = planes.num_planes == 1;
  const TapTable& chroma_x = planes.spread_x == 2 ? chroma_across : across;  // one sample a pixel: luma's taps
  const TapTable& chroma_y = planes.spread_y == 2 ? chroma_down : down;
  const Planes<std::int32_t> out = sums_for(across.outputs);
  const Planes<std::int16_t> filtered =
      between_for(std::max(across.extent, chroma_x.extent), kPlaneSlack + std::max(across.stride, chroma_x.stride));
  const ColourRow colour{across.outputs, across.shift + kPlaneBits - kColourBits, chroma_x.shift};
  RowsAhead luma_ahead(down, luma, across), cb_ahead(chroma_y, cb, chroma_x), cr_ahead(chroma_y, cr, chroma_x);
  for (int y = 0; y < down.outputs; ++y) {
    luma_ahead.before(y);
    kernels.vertical_plane(rows_under(down, y, luma, across), 0, filtered.row(0));
    filter_across(across, 1, {filtered.data, filtered.stride}, out);
    if (gray) {
      rows.write({out.data, 0});  // all three are luma
      continue;
    }
    cb_ahead.before(y), cr_ahead.before(y);
    const RowTaps under = rows_under(chroma_y, y, cb, chroma_x);
    const std::int32_t offset = centred(under);
    kernels.vertical_plane(under, offset, filtered.row(1));
    kernels.vertical_plane(rows_under(chroma_y, y, cr, chroma_x), offset, filtered.row(2));
    filter_across(chroma_x, 2, {filtered.row(1), filtered.stride}, {out.row(1), out.stride});
    kernels.colour(colour, out);
    rows.write({out.data, out.stride});
  }
}

FusedKernel::FusedKernel(CpuLevel level) : scratch_(std::make_unique<Scratch>(level)) {}
FusedKernel::~FusedKernel() = default;

void FusedKernel::run(const Compose& chain, const FusedPlan& plan, const PixelWindow& pixels, const ArrayView& out) {
  check_output(chain, plan, out);
  check_pixels(plan, pixels);
  Scratch& scratch = *scratch_;
  const bool copies = is_copy(plan.horizontal) && is_copy(plan.vertical) && pixels.scale_num == 8;
  if (!copies) scratch.build_tables(plan, pixels);
  RowWriter rows(scratch.kernels, chain, plan, out, copies ? 0 : scratch.across.shift + kPlaneBits);
  copies ? scratch.copy(plan, pixels, rows) : scratch.resample(pixels, rows);
  if (rows.streams()) scratch.kernels.fence();
}

void FusedKernel::run(const Compose& chain, const FusedPlan& plan, const PlaneWindow& planes, const ArrayView& out) {
  check_output(chain, plan, out);
  check_planes(plan, planes);
  Scratch& scratch = *scratch_;
  scratch.build_tables(plan, planes);
  const bool gray = planes.num_planes == 1;
  RowWriter rows(scratch.kernels, chain, plan, out, gray ? scratch.across.shift + kPlaneBits : kColourBits);
  scratch.resample(planes, rows);
  if (rows.streams()) scratch.kernels.fence();
}

}  // namespace infeed
