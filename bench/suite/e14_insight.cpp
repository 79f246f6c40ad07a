// What does it cost to know? W2 (50,000 rows of uint8 [3, 32, 32] and a label, random order, batch 256, 2 fork workers):
// nothing feeds faster, so nothing is hurt more. Read: samples/s with a trace by that without; and what stats() counts in
// a turn of next(), and a worker in a run, as a share of W2's time for a batch.
#include <fmt/format.h>

#include <chrono>

#include "bed.h"
#include "infeed/dataset/tensor_dataset.h"
#include "infeed/loader/loader.h"
#include "infeed/loader/trace.h"
#include "infeed/sampler/random.h"
#include "loader_turn.h"
#include "machine.h"
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

/// Four readings of the clock: two where next() begins and ends, two where the sampler does. A wait reads two more.
double counting_ns(std::int64_t turns) {
  constexpr int kReadings = 6;
  const double before = wall_s();
  for (std::int64_t i = 0; i < turns * kReadings; ++i) {
    auto now = std::chrono::steady_clock::now();
    asm volatile("" : : "g"(&now) : "memory");
  }
  return (wall_s() - before) * 1e9 / static_cast<double>(turns);
}

/// What the readings take of a batch, by the rates of whole rounds.
void add_share_of_counting(const Bed& bed, const Series& rates, Report& report) {
  Series shares;
  for (const double rate : rates) {
    const double batch_ns = static_cast<double>(kBatch) / rate * 1e9;
    shares.push_back(counting_ns(bed.size(100'000, 1'000)) / batch_ns * 100);
  }
  report.add({.id = "E14",
              .what = "W2 loader, reading the clock for stats(), of a batch's time",
              .unit = "%",
              .rounds = shares,
              .better = Better::kLower,
              .must = 1.0,
              .aim = 0.5});
}

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
  add_share_of_counting(bed, rates[0], report);
}

}  // namespace bench
