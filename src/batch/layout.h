#pragma once
/// Where the rows of a fixed schema lie in an extent.
///
///   extent: | field 0: row 0, row 1, ... row max_rows - 1 | pad | field 1: row 0, ... | pad | ...
///           0                                                   offset(1), a multiple of 128
///
/// Rows of a field follow each other without gaps, so each field is one C-contiguous array [rows, ...] whose place does
/// not depend on the number of rows in use. No header: the schema and max_rows, known to all sides, say it all.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "infeed/batch/batch.h"
#include "infeed/batch/schema.h"

namespace infeed {

/// Threads: a value; const use from any.
class BatchLayout {
 public:
  /// Throws ConfigError where `schema` has variable fields, `max_rows` is below 1 or the sizes overflow.
  BatchLayout(Schema schema, int max_rows);

  [[nodiscard]] const Schema& schema() const noexcept { return schema_; }
  [[nodiscard]] int max_rows() const noexcept { return max_rows_; }
  /// Used prefix of an extent that holds `rows` rows, in [0, max_rows]; 0 for none.
  [[nodiscard]] std::size_t nbytes(int rows) const noexcept;
  /// Bytes that an extent must have.
  [[nodiscard]] std::size_t nbytes() const noexcept { return nbytes(max_rows_); }
  [[nodiscard]] std::size_t offset(std::size_t field) const noexcept { return offsets_[field]; }
  [[nodiscard]] std::size_t row_bytes(std::size_t field) const noexcept { return row_bytes_[field]; }

  /// Views of row `row`, one per field, into `out` (schema().size() of them).
  void fill_row_views(std::byte* extent, int row, std::span<ArrayView> out) const noexcept;
  /// The same for views that fill_row_views() made before: only their pointers change.
  void move_row_views(std::byte* extent, int row, std::span<ArrayView> out) const noexcept;

  /// The consumer's view: one array [rows, ...] per field.
  [[nodiscard]] std::vector<NamedArray> arrays(std::byte* extent, int rows) const;

 private:
  Schema schema_;
  int max_rows_;
  std::vector<std::size_t> offsets_;
  std::vector<std::size_t> row_bytes_;
};

}  // namespace infeed
