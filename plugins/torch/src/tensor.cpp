#include "infeed/torch/tensor.h"

#include <ATen/ops/from_blob.h>
#include <c10/util/StringUtil.h>

#include <utility>

#include "infeed/base/error.h"

namespace infeed::torch {
namespace {

constexpr std::pair<DType, at::ScalarType> kTypes[] = {
    {DType::kBool, at::kBool},     {DType::kUInt8, at::kByte},        {DType::kInt8, at::kChar},
    {DType::kInt16, at::kShort},   {DType::kUInt16, at::kUInt16},     {DType::kInt32, at::kInt},
    {DType::kUInt32, at::kUInt32}, {DType::kInt64, at::kLong},        {DType::kUInt64, at::kUInt64},
    {DType::kFloat16, at::kHalf},  {DType::kBFloat16, at::kBFloat16}, {DType::kFloat32, at::kFloat},
    {DType::kFloat64, at::kDouble}};
static_assert(std::size(kTypes) == kNumDTypes);

at::Device device_of(const ArrayView& array) {
  switch (array.device.type) {
    case DeviceType::kCPU: return at::kCPU;
    case DeviceType::kCUDA: return {at::kCUDA, static_cast<at::DeviceIndex>(array.device.index)};
    default: break;
  }
  throw ConfigError(c10::str("an array ", array.shape.str(), " of ", to_string(array.dtype),
                             " lies on a device that LibTorch does not know (type ",
                             static_cast<int>(array.device.type), "): copy it to the host first."));
}

}  // namespace

at::ScalarType to_scalar_type(DType dtype) noexcept {
  for (const auto& [ours, theirs] : kTypes) {
    if (ours == dtype) return theirs;
  }
  return at::ScalarType::Undefined;
}

DType to_dtype(at::ScalarType type) {
  for (const auto& [ours, theirs] : kTypes) {
    if (theirs == type) return ours;
  }
  throw ConfigError(c10::str("no array of a batch can be of dtype ", type, "."));
}

at::Tensor to_tensor(const ArrayView& array, std::shared_ptr<void> owner) {
  const at::Device device = device_of(array);
  const auto sizes = array.shape.span(), strides = array.strides.span();
  return at::from_blob(
      array.data, {sizes.data(), sizes.size()}, {strides.data(), strides.size()},
      [owner = std::move(owner)](void*) mutable { owner.reset(); },
      at::TensorOptions(to_scalar_type(array.dtype)).device(device), device);
}

at::Tensor to_tensor(const BatchArray& array) { return to_tensor(array, array.owner); }

at::Tensor TensorBatch::at(const std::string& name) const {
  const auto found = tensors.find(name);
  if (found != tensors.end()) return found->second;
  std::string names;
  for (const auto& [known, tensor] : tensors) names += (names.empty() ? "" : ", ") + known;
  throw IndexError(c10::str("batch ", number, " has no tensor '", name, "'. Its tensors: ", names, "."));
}

TensorBatch to_tensors(const Batch& batch) {
  TensorBatch result{.tensors = {}, .indices = batch.indices(), .epoch = batch.epoch(), .number = batch.number()};
  for (const NamedArray& named : batch.arrays())
    result.tensors.emplace(named.name, to_tensor(named.array, batch.owner()));
  return result;
}

}  // namespace infeed::torch
