#include <fmt/format.h>

#include "infeed/base/error.h"
#include "infeed/transform/compose.h"

// state: {"ops": [{"op": "Resize", "height": 256, "width": 0}, ...]}; arrays of doubles as one key a number.

namespace infeed {
namespace {

constexpr std::array<std::string_view, 3> kChannels = {"r", "g", "b"};

struct Save {
  State& state;

  void size(int height, int width) const {
    state.set("height", height);
    state.set("width", width);
  }
  void operator()(const RandomResizedCrop& op) const {
    state.set("op", "RandomResizedCrop");
    size(op.height, op.width);
    state.set("scale_min", op.scale[0]);
    state.set("scale_max", op.scale[1]);
    state.set("ratio_min", op.ratio[0]);
    state.set("ratio_max", op.ratio[1]);
  }
  void operator()(const Resize& op) const {
    state.set("op", "Resize");
    size(op.height, op.width);
  }
  void operator()(const CenterCrop& op) const {
    state.set("op", "CenterCrop");
    size(op.height, op.width);
  }
  void operator()(const RandomHorizontalFlip& op) const {
    state.set("op", "RandomHorizontalFlip");
    state.set("p", op.p);
  }
  void operator()(const Normalize& op) const {
    state.set("op", "Normalize");
    for (std::size_t c = 0; c < 3; ++c) {
      state.set(fmt::format("mean_{}", kChannels[c]), op.mean[c]);
      state.set(fmt::format("std_{}", kChannels[c]), op.std[c]);
    }
  }
  void operator()(const ToDType& op) const {
    state.set("op", "ToDType");
    state.set("dtype", to_string(op.dtype));
  }
  void operator()(const ToLayout& op) const {
    state.set("op", "ToLayout");
    state.set("layout", op.layout == ImageLayout::kCHW ? "CHW" : "HWC");
  }
};

int side(const State& state, std::string_view key) {
  const std::int64_t value = state.get_int(key);
  if (value < 0 || value > 1 << 30) throw StateError(fmt::format("{} {} is no size of an image.", key, value));
  return static_cast<int>(value);
}

ImageLayout layout_from(const std::string& name) {
  if (name == "CHW") return ImageLayout::kCHW;
  if (name == "HWC") return ImageLayout::kHWC;
  throw StateError(fmt::format("layout \"{}\" is neither CHW nor HWC.", name));
}

Normalize normalize_from(const State& state) {
  Normalize op;
  for (std::size_t c = 0; c < 3; ++c) {
    op.mean[c] = state.get_double(fmt::format("mean_{}", kChannels[c]));
    op.std[c] = state.get_double(fmt::format("std_{}", kChannels[c]));
  }
  return op;
}

ImageOp op_from(const State& state) {
  const std::string name = state.get_string("op");
  if (name == "RandomResizedCrop")
    return RandomResizedCrop{.height = side(state, "height"),
                             .width = side(state, "width"),
                             .scale = {state.get_double("scale_min"), state.get_double("scale_max")},
                             .ratio = {state.get_double("ratio_min"), state.get_double("ratio_max")}};
  if (name == "Resize") return Resize{.height = side(state, "height"), .width = side(state, "width")};
  if (name == "CenterCrop") return CenterCrop{.height = side(state, "height"), .width = side(state, "width")};
  if (name == "RandomHorizontalFlip") return RandomHorizontalFlip{.p = state.get_double("p")};
  if (name == "Normalize") return normalize_from(state);
  if (name == "ToDType") return ToDType{.dtype = dtype_from_string(state.get_string("dtype"))};
  if (name == "ToLayout") return ToLayout{.layout = layout_from(state.get_string("layout"))};
  throw StateError(fmt::format("\"{}\" is no image transform of this version.", name));
}

}  // namespace

State Compose::to_state() const {
  std::vector<State> ops(ops_.size());
  for (std::size_t i = 0; i < ops_.size(); ++i) std::visit(Save{ops[i]}, ops_[i]);
  State state;
  state.set("ops", ops);
  return state;
}

Compose Compose::from_state(const State& state) {
  std::vector<ImageOp> ops;
  for (const State& op : state.get_states("ops")) ops.push_back(op_from(op));
  return Compose(std::move(ops));
}

}  // namespace infeed
