#include "loader/compactor.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "infeed/base/error.h"

namespace infeed {

void Compactor::clear() {
  if (carry_) memory_->ring().release_extent(carry_->result.extent);
  if (out_) memory_->ring().release_extent(out_->result.extent);
  carry_.reset();
  out_.reset();
  used_.clear();
  carry_used_ = 0;
}

std::optional<SourceBatch> Compactor::next(const std::function<std::optional<SourceBatch>()>& pull,
                                           const std::function<void(const Work&, int)>& passed) {
  if (!carry_ && !out_) {
    std::optional<SourceBatch> source = pull();
    if (!source) return std::nullopt;
    const bool full = std::cmp_equal(source->good.size(), source->work.rows);
    if (full && (!drop_last_ || source->work.rows == layout_.max_rows())) {
      passed(source->work, source->work.rows);
      return source;
    }
    carry_ = std::move(source);
  }
  if (!out_) begin_output();
  while (out_->work.rows < layout_.max_rows()) {
    if (!carry_) carry_ = pull();
    if (!carry_) break;
    take_rows();
  }
  if (out_->work.rows == 0 || (drop_last_ && out_->work.rows < layout_.max_rows())) {
    clear();
    return std::nullopt;
  }
  for (const auto& [work, rows] : used_) passed(work, rows);
  used_.clear();
  out_->result.rows = out_->work.rows;
  std::optional<SourceBatch> full = std::move(out_);
  out_.reset();
  return full;
}

void Compactor::begin_output() {
  const int extent = memory_->ring().acquire_extent();
  if (extent == kNoExtent)
    throw MemoryError(fmt::format("all extents are taken: {} batches are held. Drop some of them.", memory_->held()));
  memory_->touch(extent, layout_.nbytes());
  out_.emplace();
  out_->result.extent = extent;
}

// Moves as many rows as fit from the carried batch to the output.
void Compactor::take_rows() {
  const std::size_t room = static_cast<std::size_t>(layout_.max_rows() - out_->work.rows);
  const std::size_t count = std::min(room, carry_->good.size() - carry_used_);
  copy_rows(carry_->result.extent, carry_->good, carry_used_, count, out_->result.extent, out_->work.rows);
  for (std::size_t i = carry_used_; i < carry_used_ + count; ++i) {
    out_->good.push_back(static_cast<int>(out_->good.size()));
    out_->result.indices.push_back(carry_->result.indices[static_cast<std::size_t>(carry_->good[i])]);
  }
  out_->work.rows += static_cast<int>(count);
  out_->result.epoch = carry_->result.epoch;
  carry_used_ += count;
  const bool used_up = carry_used_ == carry_->good.size();
  used_.emplace_back(carry_->work, used_up ? carry_->work.rows : carry_->good[carry_used_]);
  if (!used_up) return;
  memory_->ring().release_extent(carry_->result.extent);
  carry_.reset();
  carry_used_ = 0;
}

void Compactor::copy_rows(int from_extent, const std::vector<int>& rows, std::size_t first, std::size_t count,
                          int to_extent, int to_row) const {
  const std::byte* from = memory_->arena().extent(from_extent);
  std::byte* to = memory_->arena().extent(to_extent);
  for (std::size_t field = 0; field < layout_.schema().size(); ++field) {
    const std::size_t row_bytes = layout_.row_bytes(field);
    const std::size_t offset = layout_.offset(field);
    for (std::size_t i = 0; i < count;) {
      std::size_t run = 1;  // neighbours in one copy
      while (i + run < count && rows[first + i + run] == rows[first + i] + static_cast<int>(run)) ++run;
      std::memcpy(to + offset + (static_cast<std::size_t>(to_row) + i) * row_bytes,
                  from + offset + static_cast<std::size_t>(rows[first + i]) * row_bytes, run * row_bytes);
      i += run;
    }
  }
}

}  // namespace infeed
