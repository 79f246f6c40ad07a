#pragma once
/// Where a dataset writes one sample.

#include <cstddef>
#include <cstdint>
#include <span>

#include "infeed/base/array_view.h"
#include "infeed/base/export.h"
#include "infeed/base/rng.h"
#include "infeed/batch/schema.h"

namespace infeed {

/// Time and counts that a dataset may report per stage; summed by its worker. Nanoseconds.
struct StageTimes {
  std::uint64_t read_ns = 0;       ///< file or memory to buffer
  std::uint64_t decode_ns = 0;     ///< buffer to pixels
  std::uint64_t transform_ns = 0;  ///< pixels to row
  std::uint64_t bytes_read = 0;
};

/// What makes a sample's randomness and identity: the same for any worker.
struct SampleContext {
  std::uint64_t seed = 0;
  std::uint64_t epoch = 0;
  std::int64_t index = 0;
  StageTimes* times = nullptr;  ///< never null inside Dataset::read; null only in hand-made contexts

  /// The sample's own random stream. Two calls give the same numbers.
  [[nodiscard]] Philox rng() const noexcept { return Philox(seed, epoch, static_cast<std::uint64_t>(index)); }
};

/// Hands out memory for variable fields; implemented by the batch writer.
class INFEED_API VariableStore {
 public:
  virtual ~VariableStore();
  /// Memory for `nbytes` of `field` of the current row, 64-byte aligned, kept until the batch is collated. A second
  /// call for the same field of the same row replaces the first.
  virtual std::byte* allocate(std::size_t field, const Shape& shape, std::size_t nbytes) = 0;
};

/// One sample's place in the batch. Borrowed by Dataset::read for the length of the call.
/// Fixed fields lie at their final place in the batch: write every byte of them; they hold old data before.
class INFEED_API Row {
 public:
  /// `arrays` has one view per field of `schema`; those of variable fields are empty until resize().
  Row(const Schema& schema, std::span<ArrayView> arrays, const SampleContext& context, VariableStore* store) noexcept
      : schema_(&schema), arrays_(arrays), context_(context), store_(store) {}

  [[nodiscard]] const Schema& schema() const noexcept { return *schema_; }
  [[nodiscard]] const SampleContext& context() const noexcept { return context_; }
  [[nodiscard]] std::int64_t index() const noexcept { return context_.index; }

  /// Field by position (order of the schema), C-contiguous. Throws IndexError past the last one.
  [[nodiscard]] const ArrayView& operator[](std::size_t field) const {
    if (field >= arrays_.size()) throw_no_field(field);
    return arrays_[field];
  }
  /// Field by name; throws IndexError naming the known ones.
  [[nodiscard]] const ArrayView& at(std::string_view name) const;

  /// Gives a variable field its size for this sample and returns its memory. Dimensions that the schema fixes must
  /// agree; ConfigError else. Fixed fields may be "resized" to their own shape only.
  const ArrayView& resize(std::size_t field, const Shape& shape);

  /// This row for another sample: for datasets and streams that read through others. Shares memory and sizes.
  [[nodiscard]] Row with_context(const SampleContext& context) const noexcept {
    return Row(*schema_, arrays_, context, store_);
  }

  /// Writes a scalar field (of others the first element). T must be the field's dtype: ConfigError else, IndexError for
  /// a field that is not there.
  template <typename T>
  void set(std::size_t field, T value) const {
    *(*this)[field].as<T>() = value;
  }
  template <typename T>
  void set(std::string_view name, T value) const {
    *at(name).as<T>() = value;
  }

 private:
  [[noreturn]] void throw_no_field(std::size_t field) const;

  const Schema* schema_;
  std::span<ArrayView> arrays_;
  SampleContext context_;
  VariableStore* store_;
};

}  // namespace infeed
