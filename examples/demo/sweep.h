#pragma once
/// One training job with every kind and number of workers: which setting suits this machine? Its data and loader are
/// the demo's, its model has half the width, so that a step takes about as long as feeding it.

#include <cstdint>
#include <string>
#include <vector>

#include "infeed/loader/options.h"

namespace demo {

/// One setting and what it gave.
struct SweepRow {
  infeed::WorkerKind kind = infeed::WorkerKind::kInline;
  int workers = 0;
  double samples_per_s = 0;
  double cpu_us_per_sample = 0;  ///< of all processes, the model's step included
  double pss_mb = 0;             ///< of all processes, the model and its memory included
  double first_batch_ms = 0;     ///< from the loader's construction
  double utilisation = 0;        ///< share of the time that the trainer computed and did not wait for data
  double others_share = 0;       ///< of the cores' time, taken by other programs: their noise is in the figures
};

struct SweepOptions {
  std::string data;  ///< folder with train/
  std::vector<int> workers = {1, 2, 4, 8};
  double row_seconds = 5;  ///< measured; start and warm-up come before
  std::uint64_t seed = 0;
};

/// Prints the table, each row as soon as it is measured. Throws what the loader throws, and Stopped.
[[nodiscard]] std::vector<SweepRow> sweep(const SweepOptions& options);

struct Recommendation {
  SweepRow row;
  std::string why;
};

/// Among the rows as fast as the fastest, within noise: the fewest workers, then the least memory. `rows` is not empty.
[[nodiscard]] Recommendation recommend(const std::vector<SweepRow>& rows, int cpus);

/// "thread x 2"; "inline" has no number.
[[nodiscard]] std::string setting_text(const SweepRow& row);

}  // namespace demo
