// What does it cost to pass large rows on? W4: batches of 8 rows of 4 MB from worker processes, of which the consumer
// reads a byte a page, against threads that run the same read into warm private memory.
// Read: share of the loop's bytes/s. Both are bound by memory: 1 means one write and no more.
#include <fmt/format.h>

#include <cstring>

#include "bed.h"
#include "infeed/dataset/tensor_dataset.h"
#include "infeed/loader/loader.h"
#include "infeed/sampler/random.h"
#include "loader_turn.h"

namespace bench {
namespace {

constexpr std::int64_t kRows = 64;
constexpr int kBatch = 8;

/// Rows that differ in every page.
void fill(std::byte* memory, std::int64_t row_bytes) {
  for (std::int64_t row = 0; row < kRows; ++row) {
    for (std::int64_t at = 0; at < row_bytes; at += 4096)
      std::memset(memory + row * row_bytes + at, static_cast<int>((row * 31 + at / 4096 * 7) % 251),
                  static_cast<std::size_t>(std::min<std::int64_t>(4096, row_bytes - at)));
  }
}

infeed::LoaderOptions options(int workers, std::int64_t rows) {
  infeed::LoaderOptions result;
  result.batch_size = kBatch;
  result.sampler = std::make_unique<infeed::RandomSampler>(kRows, infeed::RandomSamplerOptions{.num_samples = rows});
  result.num_workers = workers;
  result.worker_kind = infeed::WorkerKind::kFork;
  return result;
}

void compare(const Bed& bed, const infeed::Dataset& dataset, int workers, Report& report) {
  const std::int64_t passes = bed.size<std::int64_t>(32, 2);
  std::vector<std::int64_t> order;
  for (std::int64_t i = 0; i < passes * kRows; ++i) order.push_back(i * 37 % kRows);
  infeed::Loader loader(dataset, options(workers, passes * kRows));
  PlainLoop plain(dataset, workers, 4 * kBatch);
  Match match;
  const std::vector<Series> rates =
      interleave(bed.rounds, {match.contestant("plain loop", [&](std::uint64_t r) { return plain.run(order, r); }),
                              match.contestant("loader", [&](std::uint64_t) { return run_epoch(loader); })});
  report.add({.id = "E5",
              .what = fmt::format("W4 plain loop into private memory, threads: {}", workers),
              .unit = "GB/s",
              .rounds = scaled(rates[0], static_cast<double>(dataset.schema().row_bytes()) * 1e-9)});
  report.add({.id = "E5",
              .what = fmt::format("W4 loader, fork workers: {}, share of the plain loop", workers),
              .unit = "x",
              .rounds = ratio(rates[1], rates[0]),
              .must = 0.90,
              .aim = 1.0});
  report.add({.id = "E5",
              .what = fmt::format("W4 loader, fork workers: {}, CPU a row by the plain loop's", workers),
              .unit = "x",
              .rounds = ratio(match.cpu_us(1), match.cpu_us(0)),
              .better = Better::kLower});
}

}  // namespace

void transport(const Bed& bed, Report& report) {
  const std::int64_t row_bytes = bed.size<std::int64_t>(4 << 20, 64 << 10);
  const WarmMemory memory(static_cast<std::size_t>(kRows * row_bytes));
  fill(memory.data(), row_bytes);
  const infeed::TensorDataset dataset(
      {{"x", infeed::ArrayView(memory.data(), infeed::DType::kUInt8, infeed::Shape{kRows, row_bytes})}});
  compare(bed, dataset, 1, report);
  compare(bed, dataset, 2, report);
}

}  // namespace bench
