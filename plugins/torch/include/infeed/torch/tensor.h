#pragma once
/// Arrays of batches as LibTorch's tensors.
///
///   while (auto batch = loader.next()) {
///     at::Tensor image = infeed::torch::to_tensor(batch->at("image"));  // no copy
///     ...
///   }

#include <ATen/core/Tensor.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "infeed/batch/batch.h"

namespace infeed::torch {

/// A tensor over the array's memory, with its dtype, shape and strides. It may outlive the batch and the loader, and be
/// dropped on any thread; the memory serves a later batch when its last tensor, view or copy of the owner is gone.
/// Writable. Throws ConfigError for memory that no tensor can stand on (a simulated device's).
[[nodiscard]] INFEED_API at::Tensor to_tensor(const BatchArray& array);
/// The same for an array whose memory `owner` keeps.
[[nodiscard]] INFEED_API at::Tensor to_tensor(const ArrayView& array, std::shared_ptr<void> owner);
/// An ArrayView borrows its memory: take the array from Batch::at(), or name the owner.
at::Tensor to_tensor(const ArrayView& array) = delete;

[[nodiscard]] INFEED_API at::ScalarType to_scalar_type(DType dtype) noexcept;
/// Throws ConfigError for a type that batches do not have (complex, quantized, float8).
[[nodiscard]] INFEED_API DType to_dtype(at::ScalarType type);

/// A batch of tensors by name.
struct TensorBatch {
  std::map<std::string, at::Tensor> tensors;
  std::vector<std::int64_t> indices;  ///< as Batch::indices()
  std::uint64_t epoch = 0;
  std::uint64_t number = 0;

  [[nodiscard]] std::int64_t size() const noexcept { return static_cast<std::int64_t>(indices.size()); }
  /// Tensor of that name; throws IndexError naming the known ones.
  [[nodiscard]] INFEED_API at::Tensor at(const std::string& name) const;
};

/// All arrays of the batch, without a copy.
[[nodiscard]] INFEED_API TensorBatch to_tensors(const Batch& batch);

}  // namespace infeed::torch
