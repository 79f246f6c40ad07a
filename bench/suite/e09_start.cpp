// How long until the first batch, and until all is gone? Two workers, rows of 8 bytes, so that all is start-up.
// Read: ms from before the constructor until the first batch is in hand; ms of the destructor, both batches in flight.
#include <fmt/format.h>

#include <optional>
#include <stdexcept>

#include "bed.h"
#include "infeed/dataset/synthetic.h"
#include "infeed/loader/loader.h"
#include "machine.h"
#include "warm_memory.h"

namespace bench {
namespace {

struct Times {
  Series first_batch_ms, tear_down_ms;
};

void measure(const infeed::Dataset& dataset, infeed::WorkerKind kind, int times, std::uint64_t round, Times& result) {
  Series first, end;
  for (int i = 0; i < times; ++i) {
    infeed::LoaderOptions options;
    options.batch_size = 64;
    options.num_workers = 2;
    options.worker_kind = kind;
    const double begin = wall_s();
    std::optional<infeed::Loader> loader;
    loader.emplace(dataset, std::move(options));
    if (loader->next()->size() != 64) throw std::runtime_error("the first batch is not whole");
    const double ready = wall_s();
    loader.reset();
    first.push_back((ready - begin) * 1e3);
    end.push_back((wall_s() - ready) * 1e3);
  }
  if (round == 0) return;
  result.first_batch_ms.push_back(median(first));
  result.tear_down_ms.push_back(median(end));
}

struct Case {
  std::string name;
  infeed::WorkerKind kind;
  std::size_t touched;  ///< bytes of the parent
  double must, aim;     ///< ms to the first batch; 0: none
  Times times = {};
};

void add(const Case& it, Report& report) {
  const auto bar = [](double ms) { return ms > 0 ? std::optional(ms) : std::nullopt; };
  report.add({.id = "E9",
              .what = fmt::format("first batch after construction, 2 workers, {}", it.name),
              .unit = "ms",
              .rounds = it.times.first_batch_ms,
              .better = Better::kLower,
              .must = bar(it.must),
              .aim = bar(it.aim)});
  report.add({.id = "E9",
              .what = fmt::format("tear-down, 2 workers, {}", it.name),
              .unit = "ms",
              .rounds = it.times.tear_down_ms,
              .better = Better::kLower,
              .must = 5,
              .aim = 2});
}

}  // namespace

void start(const Bed& bed, Report& report) {
  const infeed::SyntheticDataset dataset(100'000, {{.name = "x", .dtype = infeed::DType::kInt64, .shape = {}}});
  const std::size_t large = bed.size<std::size_t>(1'000'000'000, 10'000'000);
  Case cases[] = {{"fork", infeed::WorkerKind::kFork, 0, 5, 1},
                  {"spawn", infeed::WorkerKind::kSpawn, 0, 8, 3},
                  {"thread", infeed::WorkerKind::kThread, 0, 0, 0},
                  {"spawn, 1 GB touched in the parent", infeed::WorkerKind::kSpawn, large, 8, 3}};
  std::vector<Turn> turns;
  for (Case& it : cases)
    turns.emplace_back([&](std::uint64_t round) {
      std::optional<WarmMemory> ballast;
      if (it.touched > 0) ballast.emplace(it.touched);
      measure(dataset, it.kind, bed.size(20, 2), round, it.times);
      return 0.0;
    });
  static_cast<void>(interleave(bed.rounds, turns));
  for (const Case& it : cases) add(it, report);
}

}  // namespace bench
