#pragma once
/// The limit: threads that read rows into warm private memory, with no loader.

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "infeed/dataset/dataset.h"
#include "warm_memory.h"

namespace bench {

/// What a turn did. Checksum: touch() of every row's first field, summed; equal for equal rows in any order.
struct TurnResult {
  double seconds = 0;
  double cpu_s = 0;
  std::uint64_t rows = 0;
  std::uint64_t checksum = 0;
};

/// Each thread has a slot of `slot_rows` rows, made once and reused, as a trainer would without a loader.
class PlainLoop {
 public:
  PlainLoop(const infeed::Dataset& dataset, int threads, int slot_rows);

  /// Reads the rows of `order`, 8 at a time in turn, as sample (0, epoch, index).
  [[nodiscard]] TurnResult run(std::span<const std::int64_t> order, std::uint64_t epoch);

 private:
  [[nodiscard]] std::uint64_t read_row(std::byte* memory, std::int64_t index, std::uint64_t epoch) const;

  const infeed::Dataset& dataset_;
  std::size_t row_bytes_;  // rounded up to pages
  std::size_t slot_rows_;
  std::vector<std::unique_ptr<WarmMemory>> slots_;
};

/// 0, 1, ... size - 1.
[[nodiscard]] std::vector<std::int64_t> sequence(std::int64_t size);

}  // namespace bench
