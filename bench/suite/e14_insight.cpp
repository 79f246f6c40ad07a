// What does it cost to know? W2 (50,000 rows of uint8 [3, 32, 32] and a label, random order, batch 256, 2 fork workers):
// nothing feeds faster, so nothing is hurt more. Read: samples/s with a trace by that without; those of a loader that
// counts for stats() by one that does not; and of one that counts, and reads each clock, twice by one that does so once
// (counting_bench.cpp tells why).
#include <fmt/format.h>

#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <utility>

#include "bed.h"
#include "command.h"
#include "infeed/dataset/tensor_dataset.h"
#include "infeed/loader/loader.h"
#include "infeed/loader/trace.h"
#include "infeed/sampler/random.h"
#include "loader_turn.h"
#include "warm_memory.h"

namespace bench {
namespace {

constexpr std::int64_t kRows = 50'000;
constexpr std::int64_t kBatch = 256;
constexpr std::size_t kRowBytes = 3072;

infeed::LoaderOptions options(std::int64_t samples) {
  infeed::LoaderOptions result;
  result.batch_size = kBatch;
  result.sampler = std::make_unique<infeed::RandomSampler>(kRows, infeed::RandomSamplerOptions{.num_samples = samples});
  result.num_workers = 2;
  result.worker_kind = infeed::WorkerKind::kFork;
  return result;
}

#ifdef BENCH_COUNTING
/// Rates and CPU a sample of the loader as it is, without counting, and with everything counted twice.
void counting(const Bed& bed, Report& report) {
  // A turn is 80 ms: what it meets on two cores differs by a third, so that many are needed.
  std::istringstream text(
      output_of(fmt::format("{} {} {}", BENCH_COUNTING, bed.size(24 * bed.rounds, 1), kRows * bed.size(12, 1))));
  std::map<std::string, Series> rates, cpu_us;
  double rate = 0, cpu = 0;
  for (std::string way; text >> way >> rate >> cpu;) {
    rates[way].push_back(rate);
    cpu_us[way].push_back(cpu);
  }
  const auto line = [&](const char* what, Series rounds, Better better, std::optional<double> must) {
    report.add({.id = "E14",
                .what = std::string("W2 loader, 2 fork workers, ") + what,
                .unit = "x",
                .rounds = std::move(rounds),
                .better = better,
                .must = must});
  };
  line("speed, counting for stats() by not", ratio(rates["once"], rates["none"]), Better::kHigher, 0.99);
  line("CPU a sample, counting by not", ratio(cpu_us["once"], cpu_us["none"]), Better::kLower, 1.01);
  line("speed, counting and clocks twice by once", ratio(rates["twice"], rates["once"]), Better::kHigher, {});
  line("CPU a sample, the same", ratio(cpu_us["twice"], cpu_us["once"]), Better::kLower, 1.01);
}
#else
void counting(const Bed& /*bed*/, Report& /*report*/) {}
#endif

}  // namespace

void insight(const Bed& bed, Report& report) {
  const WarmMemory pixels(kRows * kRowBytes);
  for (std::size_t i = 0; i < pixels.nbytes(); i += 64) pixels.data()[i] = static_cast<std::byte>(i / kRowBytes % 251);
  const infeed::TensorDataset dataset(
      {{"image", infeed::ArrayView(pixels.data(), infeed::DType::kUInt8, infeed::Shape{kRows, 3, 32, 32})}});
  const std::int64_t samples = kRows * bed.size(20, 1);
  infeed::Loader loader(dataset, options(samples));
  Match match;
  const auto plain = [&](std::uint64_t) { return run_epoch(loader); };
  const auto traced = [&](std::uint64_t) {
    const infeed::Trace trace;
    return run_epoch(loader);
  };
  const std::vector<Series> rates =
      interleave(bed.rounds, {match.contestant("plain", plain), match.contestant("traced", traced)});
  report.add({.id = "E14",
              .what = "W2 loader, 2 fork workers, traced, share of untraced",
              .unit = "x",
              .rounds = ratio(rates[1], rates[0]),
              .must = 0.95,
              .aim = 0.98});
  report.add({.id = "E14",
              .what = "W2 loader, 2 fork workers, CPU a sample, traced by untraced",
              .unit = "x",
              .rounds = ratio(match.cpu_us(1), match.cpu_us(0)),
              .better = Better::kLower,
              .must = 1.05,
              .aim = 1.02});
  counting(bed, report);
}

}  // namespace bench
