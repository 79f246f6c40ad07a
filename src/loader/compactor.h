#pragma once
/// on_error skip: full batches from batches with holes.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "batch/layout.h"
#include "loader/batch_memory.h"
#include "loader/feed.h"

namespace infeed {

/// A batch as the workers left it.
struct SourceBatch {
  Work work;
  SlotResult result;
  std::vector<int> good;  ///< rows that hold a sample, ascending
};

/// The sequence of good samples, in order, cut anew into full batches. A batch without holes passes untouched where it
/// begins together with an output; from a hole on each batch is copied once, until that is so again. Deterministic:
/// only order and faults matter.
class Compactor {
 public:
  Compactor(std::shared_ptr<BatchMemory> memory, const BatchLayout& layout, bool drop_last)
      : memory_(std::move(memory)), layout_(layout), drop_last_(drop_last) {}

  /// Gives the rest of a pending batch up.
  void clear();
  /// The next full batch; `pull` gives source batches until the epoch ends, `passed` is told of the rows that are used
  /// up.
  [[nodiscard]] std::optional<SourceBatch> next(const std::function<std::optional<SourceBatch>()>& pull,
                                                const std::function<void(const Work&, int)>& passed);

 private:
  void copy_rows(int from_extent, const std::vector<int>& rows, std::size_t first, std::size_t count, int to_extent,
                 int to_row) const;
  std::shared_ptr<BatchMemory> memory_;
  const BatchLayout& layout_;
  bool drop_last_;
  void begin_output();
  void take_rows();

  std::optional<SourceBatch> out_;          ///< being filled; survives an exception of pull()
  std::vector<std::pair<Work, int>> used_;  ///< rows of sources that out_ holds, told on delivery
  std::optional<SourceBatch> carry_;
  std::size_t carry_used_ = 0;  ///< of carry_->good
};

}  // namespace infeed
