#pragma once
/// A batch of any structure as bytes in an extent: how it crosses from a worker to the consumer.
///
///   skeleton  the structure, scalars and strings, and a record for each tensor
///   tensors   the tensors' elements, each at a multiple of 64 bytes
///   rows0 ...  stacked tensors, written sample by sample
///
/// Both ends are one program, so dtypes are LibTorch's own numbers.

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "infeed/batch/batch.h"
#include "infeed/collate/collate.h"

namespace infeed::torch {

/// Samples of one shape, each copied to its place in the batch as it comes: torch::stack without the vector.
class INFEED_API StackedRows {
 public:
  /// Room for `count` samples like the first.
  explicit StackedRows(std::size_t count) : count_(count) {}

  /// The next sample. Throws ConfigError, with the sample's place, where its shape is another than the first one's, or
  /// its memory is not plain CPU memory. Samples of another dtype are promoted as torch::stack does.
  void put(const at::Tensor& sample, CollateOutput& out, const std::string& name);

 private:
  friend class MessageWriter;
  void begin(const at::Tensor& sample, CollateOutput& out, const std::string& name);
  void promote(const at::Tensor& sample);

  std::size_t count_, filled_ = 0;
  std::string name_;
  at::Tensor rows_;                   ///< [count, ...] over the batch's memory
  std::vector<at::Tensor> promoted_;  ///< instead, once dtypes differ
};

/// Writes one message. One owner, one thread.
class INFEED_API MessageWriter {
 public:
  explicit MessageWriter(CollateOutput& out) : out_(out) {}

  template <typename T>
  void value(const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    bytes(std::as_bytes(std::span(&value, 1)));
  }
  void count(std::size_t count) { value(static_cast<std::uint64_t>(count)); }
  void bytes(std::span<const std::byte> bytes) { skeleton_.insert(skeleton_.end(), bytes.begin(), bytes.end()); }
  /// An undefined tensor stays undefined. Strides are kept where no two elements share memory; autograd's history is
  /// not. Throws ConfigError for what is not plain CPU memory (sparse, quantized, another device).
  void tensor(const at::Tensor& tensor);
  /// All rows must be there.
  void stacked(StackedRows& rows);
  [[nodiscard]] CollateOutput& out() noexcept { return out_; }

  /// Copies the tensors to their places. Nothing may be written after.
  void finish();

 private:
  void record(const at::Tensor& tensor, const std::string& array, std::size_t offset);

  CollateOutput& out_;
  std::vector<std::byte> skeleton_;
  std::vector<at::Tensor> tensors_;
  std::vector<std::size_t> offsets_;
  std::size_t tensor_bytes_ = 0;
};

/// Reads in the order of writing. Its tensors stand on the batch's memory, and keep it.
class INFEED_API MessageReader {
 public:
  explicit MessageReader(const Batch& batch);

  template <typename T>
  T value() {
    static_assert(std::is_trivially_copyable_v<T>);
    T value;
    std::memcpy(&value, bytes(sizeof(T)).data(), sizeof(T));
    return value;
  }
  std::size_t count() { return static_cast<std::size_t>(value<std::uint64_t>()); }
  /// Valid as long as the batch. Throws DataError past the end: both ends read a type differently.
  std::span<const std::byte> bytes(std::size_t count);
  at::Tensor tensor();

 private:
  const Batch& batch_;
  std::span<const std::byte> left_;
};

}  // namespace infeed::torch
