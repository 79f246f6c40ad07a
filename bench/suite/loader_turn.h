#pragma once
/// The loader's side of a comparison.

#include <cstdint>
#include <map>
#include <string>

#include "infeed/loader/loader.h"
#include "plain_loop.h"
#include "rounds.h"

namespace bench {

/// One epoch; of every batch a byte of each 4 KiB of the first field's rows is read. cpu_s: this process and the
/// workers.
[[nodiscard]] TurnResult run_epoch(infeed::Loader& loader);

/// CPU seconds of the loader's worker processes so far; worker threads count to this process.
[[nodiscard]] double workers_cpu_s(const infeed::Loader& loader);

/// CPU seconds of this process and the loader's worker processes so far.
[[nodiscard]] double loader_cpu_s(const infeed::Loader& loader);

/// Turns that must all deliver the same rows: a fast wrong loader is no result.
class Match {
 public:
  /// A turn of interleave(): samples a second. Throws std::runtime_error naming `who` where it delivered something else
  /// than the first of its round.
  [[nodiscard]] Turn contestant(std::string who, std::function<TurnResult(std::uint64_t round)> turn);
  /// CPU a sample of contestant `i`, us, a value a round; in the order of contestant(). On a loaded machine the figure
  /// to trust.
  [[nodiscard]] const Series& cpu_us(std::size_t i) const { return cpu_us_.at(i); }

 private:
  void check(std::uint64_t round, const TurnResult& turn, const std::string& who);

  std::map<std::uint64_t, TurnResult> first_;
  std::vector<Series> cpu_us_;
};

}  // namespace bench
