#include "transform/describe.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace infeed {
namespace {

struct Describe {
  std::string operator()(const RandomResizedCrop& op) const {
    return fmt::format("RandomResizedCrop(height={}, width={}, scale=[{}], ratio=[{}])", op.height, op.width,
                       fmt::join(op.scale, ", "), fmt::join(op.ratio, ", "));
  }
  std::string operator()(const Resize& op) const {
    return fmt::format("Resize(height={}, width={})", op.height, op.width);
  }
  std::string operator()(const CenterCrop& op) const {
    return fmt::format("CenterCrop(height={}, width={})", op.height, op.width);
  }
  std::string operator()(const RandomHorizontalFlip& op) const {
    return fmt::format("RandomHorizontalFlip(p={})", op.p);
  }
  std::string operator()(const Normalize& op) const {
    return fmt::format("Normalize(mean=[{}], std=[{}])", fmt::join(op.mean, ", "), fmt::join(op.std, ", "));
  }
  std::string operator()(const ToDType& op) const { return fmt::format("ToDType({})", to_string(op.dtype)); }
  std::string operator()(const ToLayout& op) const {
    return fmt::format("ToLayout({})", op.layout == ImageLayout::kCHW ? "CHW" : "HWC");
  }
};

}  // namespace

std::string describe(const ImageOp& op) { return std::visit(Describe{}, op); }

}  // namespace infeed
