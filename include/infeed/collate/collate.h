#pragma once
/// How the rows of a batch become arrays.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "infeed/base/array_view.h"
#include "infeed/base/export.h"
#include "infeed/base/state.h"
#include "infeed/batch/schema.h"

namespace infeed {

/// Makes one output array's memory in the batch being filled; implemented by the batch writer.
class INFEED_API CollateOutput {
 public:
  virtual ~CollateOutput();
  /// Appends an output array, 64-byte aligned, uninitialised, in its final place. Names are unique within the batch.
  /// Throws MemoryError where the batch outgrows its extent, naming both sizes and the option extent_bytes.
  virtual ArrayView add(const std::string& name, DType dtype, const Shape& shape) = 0;
};

/// Rows of a batch to arrays, for schemas with variable fields. Schemas that are fixed need none: rows are stacked in
/// place while they are read. Determinism: a pure function of its rows. Threads: called from several workers at once on
/// one const object.
class INFEED_API Collate {
 public:
  virtual ~Collate();
  /// `rows[f]` holds field f of all rows, in batch order: C-contiguous views that live until this returns.
  virtual void operator()(const Schema& schema, std::span<const std::vector<ArrayView>> rows,
                          CollateOutput& out) const = 0;
  /// Name and parameters for a spawned worker ("stack", "pad", "ragged"); an empty name means: cannot cross.
  [[nodiscard]] virtual std::string name() const;
  [[nodiscard]] virtual State params() const;
};

/// The built-in collate of that name ("stack", "pad", "ragged") from what its params() gave. Throws ConfigError on
/// another name, StateError on params that are not its own.
[[nodiscard]] INFEED_API std::unique_ptr<Collate> make_collate(const std::string& name, const State& params);

}  // namespace infeed
