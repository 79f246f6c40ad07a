// What does the loader cost on top of decoding? W1a with two workers, against two threads that call the same
// ImageFolder::read in a loop into warm private memory; the page cache is warm, the consumer reads a byte a page.
// Read: share of the loop's samples/s. 1 means that transport, order and hand-over are free.
#include <fmt/format.h>

#include "bed.h"
#include "infeed/loader/loader.h"
#include "loader_turn.h"

namespace bench {
namespace {

constexpr int kBatch = 64;
constexpr int kWorkers = 2;

infeed::LoaderOptions options(infeed::WorkerKind kind) {
  infeed::LoaderOptions result;
  result.batch_size = kBatch;
  result.num_workers = kWorkers;
  result.worker_kind = kind;
  return result;
}

}  // namespace

void loader_share(const Bed& bed, Report& report) {
  const infeed::ImageFolder dataset = w1a(bed);
  const std::vector<std::int64_t> order = sequence(dataset.size());
  infeed::Loader forked(dataset, options(infeed::WorkerKind::kFork));  // first: no thread lives yet
  infeed::Loader spawned(dataset, options(infeed::WorkerKind::kSpawn));
  infeed::Loader threads(dataset, options(infeed::WorkerKind::kThread));
  PlainLoop plain(dataset, kWorkers, kBatch);
  Match match;
  const std::vector<Series> rates =
      interleave(bed.rounds, {match.contestant("plain loop", [&](std::uint64_t r) { return plain.run(order, r); }),
                              match.contestant("fork", [&](std::uint64_t) { return run_epoch(forked); }),
                              match.contestant("spawn", [&](std::uint64_t) { return run_epoch(spawned); }),
                              match.contestant("thread", [&](std::uint64_t) { return run_epoch(threads); })});
  report.add({.id = "E1", .what = "W1a plain loop, 2 threads, no loader", .unit = "samples/s", .rounds = rates[0]});
  const char* kinds[] = {"fork", "spawn", "thread"};
  for (std::size_t i = 0; i < 3; ++i) {
    report.add({.id = "E1",
                .what = fmt::format("W1a loader, 2 {} workers, share of the plain loop", kinds[i]),
                .unit = "x",
                .rounds = ratio(rates[i + 1], rates[0]),
                .must = 0.90,
                .aim = 0.97});
  }
  report.add({.id = "E1",
              .what = "W1a loader, 2 fork workers, CPU a sample by the plain loop's",
              .unit = "x",
              .rounds = ratio(match.cpu_us(1), match.cpu_us(0)),
              .better = Better::kLower});
}

}  // namespace bench
