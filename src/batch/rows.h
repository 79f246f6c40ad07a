#pragma once
/// Rows for Dataset::read: at their final place (RowWriter), or gathered in private memory for a collate (RowGather).

#include <cstddef>
#include <span>
#include <vector>

#include "batch/layout.h"
#include "batch/scratch.h"
#include "infeed/batch/row.h"

namespace infeed {

/// Rows of a fixed schema, in an extent. A row costs one pointer per field; nothing is allocated after construction.
/// One owner, one thread: a Row lives until the next row() of the same writer.
class RowWriter {
 public:
  /// `layout` must outlive the writer.
  explicit RowWriter(const BatchLayout& layout);

  /// Row `row`, in [0, max_rows), of the batch at `extent`.
  [[nodiscard]] Row row(std::byte* extent, int row, const SampleContext& context) noexcept {
    layout_->move_row_views(extent, row, views_);
    return Row(layout_->schema(), views_, context, nullptr);
  }

 private:
  const BatchLayout* layout_;
  std::vector<ArrayView> views_;
};

/// Rows of any schema, read one after another into memory that is reused from batch to batch. One owner, one thread.
///
///   gather.start_batch();
///   for (each sample) { Row row = gather.start_row(context); dataset.read(row); gather.commit_row(); }
///   collate_rows(collate, gather, extent);      // src/collate/run.h
///
/// A row that was started but not committed (its read threw) is dropped by the next start_row().
class RowGather final : public VariableStore {
 public:
  explicit RowGather(Schema schema);

  void start_batch() noexcept;
  [[nodiscard]] Row start_row(const SampleContext& context);
  /// Throws DataError where the dataset left a variable field without a size; the row is then not part of the batch.
  void commit_row();

  [[nodiscard]] const Schema& schema() const noexcept { return schema_; }
  [[nodiscard]] std::size_t num_rows() const noexcept { return num_rows_; }
  /// What a Collate takes: field f of all committed rows. Valid until start_batch().
  [[nodiscard]] std::span<const std::vector<ArrayView>> fields() const noexcept { return fields_; }
  /// Private memory held.
  [[nodiscard]] std::size_t nbytes() const noexcept { return scratch_.capacity(); }

  std::byte* allocate(std::size_t field, const Shape& shape, std::size_t nbytes) override;

 private:
  Schema schema_;
  Scratch scratch_;
  std::vector<ArrayView> views_;                ///< of the row being read
  std::vector<std::vector<ArrayView>> fields_;  ///< [field][row]
  std::size_t num_rows_ = 0;
  std::int64_t index_ = 0;
  const std::byte* latest_ = nullptr;  ///< latest allocation, of latest_field_ of the row being read
  std::size_t latest_field_ = 0;
};

}  // namespace infeed
