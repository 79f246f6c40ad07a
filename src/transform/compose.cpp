#include "infeed/transform/compose.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "infeed/base/error.h"
#include "transform/describe.h"

namespace infeed {
namespace {

constexpr int kMaxSide = 65'535;  // of a result: what a JPEG could hold

[[noreturn]] void fail(const ImageOp& op, std::string_view what) {
  throw ConfigError(fmt::format("{}: {}", describe(op), what));
}

void check_side(const ImageOp& op, std::string_view name, int value, int least = 1) {
  if (value < least || value > kMaxSide)
    fail(op, fmt::format("{} {} is outside {} .. {}.", name, value, least, kMaxSide));
}

void check_range(const ImageOp& op, std::string_view name, const std::array<double, 2>& range) {
  if (range[0] > 0 && range[0] <= range[1] && std::isfinite(range[1])) return;
  fail(op, fmt::format("{} must be two positive numbers, the smaller first.", name));
}

// The values of one op, whatever stands round it.
struct CheckValues {
  const ImageOp& op;

  void operator()(const RandomResizedCrop& crop) const {
    check_side(op, "height", crop.height);
    check_side(op, "width", crop.width);
    check_range(op, "scale", crop.scale);
    check_range(op, "ratio", crop.ratio);
  }
  void operator()(const Resize& resize) const {
    check_side(op, "height", resize.height);
    check_side(op, "width", resize.width, 0);
  }
  void operator()(const CenterCrop& crop) const {
    check_side(op, "height", crop.height);
    check_side(op, "width", crop.width);
  }
  void operator()(const RandomHorizontalFlip& flip) const {
    if (!(flip.p >= 0 && flip.p <= 1)) fail(op, "p is a probability, from 0 to 1.");
  }
  void operator()(const Normalize& normalize) const {
    for (std::size_t c = 0; c < 3; ++c) {
      if (!std::isfinite(normalize.mean[c])) fail(op, "mean must be finite.");
      if (!(std::isfinite(normalize.std[c]) && normalize.std[c] > 0)) fail(op, "std must be positive: it divides.");
      if (std::max(1.0, std::abs(normalize.mean[c])) / normalize.std[c] > 1e30)
        fail(op, "std is so small that results overflow float32.");
    }
  }
  void operator()(const ToDType& to) const {
    const DType d = to.dtype;
    if (d != DType::kUInt8 && d != DType::kFloat16 && d != DType::kBFloat16 && d != DType::kFloat32)
      fail(op, "images become uint8, float16, bfloat16 or float32.");
  }
  void operator()(const ToLayout&) const {}
};

bool is_resampling(const ImageOp& op) {
  return std::holds_alternative<RandomResizedCrop>(op) || std::holds_alternative<Resize>(op);
}
bool is_geometry(const ImageOp& op) {
  return is_resampling(op) || std::holds_alternative<CenterCrop>(op) ||
         std::holds_alternative<RandomHorizontalFlip>(op);
}

// The place of `op` among those before it.
void check_place(const std::vector<ImageOp>& ops, std::size_t place) {
  const ImageOp& op = ops[place];
  for (std::size_t i = 0; i < place; ++i) {
    const ImageOp& before = ops[i];
    if (is_resampling(op) && is_resampling(before))
      fail(op, fmt::format("the picture was resampled already by {}; one pass serves a chain. Drop one of the two.",
                           describe(before)));
    if (is_geometry(op) && !is_geometry(before))
      fail(op, fmt::format("stands behind {}. Put crops, resizes and flips before it.", describe(before)));
    if (!is_geometry(op) && op.index() == before.index())
      fail(op, fmt::format("the chain has {} already. Drop one of the two.", describe(before)));
  }
}

}  // namespace

Compose::Compose(std::vector<ImageOp> ops) : ops_(std::move(ops)) {
  const ImageOp* normalize = nullptr;
  const ImageOp* to_dtype = nullptr;
  for (std::size_t i = 0; i < ops_.size(); ++i) {
    const ImageOp& op = ops_[i];
    std::visit(CheckValues{op}, op);
    check_place(ops_, i);
    if (std::holds_alternative<Normalize>(op)) normalize = &op;
    if (std::holds_alternative<ToDType>(op)) to_dtype = &op;
    if (const auto* to = std::get_if<ToLayout>(&op)) layout_ = to->layout;
  }
  if (normalize != nullptr) dtype_ = DType::kFloat32;
  if (to_dtype != nullptr) dtype_ = std::get<ToDType>(*to_dtype).dtype;
  if (normalize != nullptr && dtype_ == DType::kUInt8)
    fail(*to_dtype, fmt::format("uint8 cannot hold what {} makes. Use a floating dtype.", describe(*normalize)));
}

Shape Compose::output_shape() const {
  std::int64_t height = -1, width = -1;
  for (const ImageOp& op : ops_) {
    if (const auto* crop = std::get_if<RandomResizedCrop>(&op)) height = crop->height, width = crop->width;
    if (const auto* center = std::get_if<CenterCrop>(&op)) height = center->height, width = center->width;
    if (const auto* resize = std::get_if<Resize>(&op)) {
      const bool known = resize->width > 0 || (height == width && height > 0);  // a square stays one
      height = known ? resize->height : -1;
      width = known ? (resize->width > 0 ? resize->width : resize->height) : -1;
    }
  }
  return layout_ == ImageLayout::kCHW ? Shape{3, height, width} : Shape{height, width, 3};
}

}  // namespace infeed
