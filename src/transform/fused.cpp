#include "transform/fused.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
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
  std::vector<std::int16_t> planes;  // one row between the passes
  std::vector<std::int32_t> sums;    // one row before it is emitted

  Planes<std::int32_t> sums_for(int width) {
    const std::size_t stride = static_cast<std::size_t>(block_up(width));
    if (sums.size() < 3 * stride) sums.resize(3 * stride);
    return {sums.data(), static_cast<std::ptrdiff_t>(stride)};
  }
  Planes<std::int16_t> planes_for(int width, int slack) {
    const std::size_t stride = static_cast<std::size_t>(block_up(width) + slack);
    if (planes.size() < 3 * stride) planes.resize(3 * stride);
    return {planes.data(), static_cast<std::ptrdiff_t>(stride)};
  }

  void copy(const FusedPlan& plan, const PixelWindow& pixels, RowWriter& rows);
  void build_tables(const FusedPlan& plan, const PixelWindow& pixels);
  void resample(const PixelWindow& pixels, RowWriter& rows);
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

void FusedKernel::Scratch::resample(const PixelWindow& pixels, RowWriter& rows) {
  const Planes<std::int32_t> out = sums_for(across.outputs);
  const Planes<std::int16_t> between = planes_for(across.extent, kPlaneSlack + across.stride);
  const auto horizontal = across.taps > TapTable::kMaxTaps ? horizontal_exact : kernels.horizontal;
  for (int y = 0; y < down.outputs; ++y) {
    const auto i = static_cast<std::size_t>(y);
    const std::ptrdiff_t row = down.first + down.start[i];
    kernels.vertical({.pixels = pixels.pixels + row * pixels.stride + std::ptrdiff_t{4} * across.first,
                      .stride = pixels.stride,
                      .weights = down.weights.data() + i * static_cast<std::size_t>(down.stride),
                      .taps = down.count[i],
                      .shift = down.shift,
                      .width = across.extent},
                     between);
    horizontal(across, {between.data, between.stride}, out);
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

}  // namespace infeed
