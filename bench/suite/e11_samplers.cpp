// What does a shuffle of 100 million cost? RandomSampler (torch's order, materialised at the first index) and
// FeistelSampler (no memory), all indices drawn in batches of 4,096; beside torch.randperm alone, in a program of its
// own. Read: seconds, and how many times sooner than torch. The memory is what this process has more of while it draws.
#include <array>
#include <stdexcept>

#include "bed.h"
#include "command.h"
#include "infeed/sampler/feistel.h"
#include "infeed/sampler/random.h"
#include "machine.h"

namespace bench {
namespace {

/// Seconds to draw an epoch; checks that the indices sum up to those of [0, size).
double draw_all(infeed::Sampler& sampler, std::uint64_t epoch, std::int64_t size) {
  std::array<std::int64_t, 4096> indices{};
  std::uint64_t sum = 0;
  const double before = wall_s();
  sampler.start_epoch(epoch);
  while (const std::size_t got = sampler.next(indices)) {
    for (std::size_t i = 0; i < got; ++i) sum += static_cast<std::uint64_t>(indices[i]);
  }
  const double seconds = wall_s() - before;
  const auto n = static_cast<std::uint64_t>(size);
  if (sum != n * (n - 1) / 2) throw std::runtime_error("the shuffle left indices out");
  return seconds;
}

void add_against_torch(const char* what, const Series& torch, const Series& ours, Report& report) {
  report.add({.id = "E11", .what = what, .unit = "x", .rounds = ratio(torch, ours), .must = 1.0, .aim = 3.0});
}

void add_time(const char* what, const Series& seconds, Report& report) {
  report.add({.id = "E11", .what = what, .unit = "s", .rounds = seconds, .better = Better::kLower});
}

}  // namespace

void samplers(const Bed& bed, Report& report) {
  const auto size = bed.size<std::int64_t>(100'000'000, 100'000);
  Series feistel_mb;
  std::vector<Turn> turns = {
      [&](std::uint64_t round) {
        const std::uint64_t before = resident_bytes();
        infeed::FeistelSampler sampler(size);
        const double seconds = draw_all(sampler, round, size);
        const std::uint64_t after = resident_bytes();
        if (round > 0) feistel_mb.push_back(after > before ? static_cast<double>(after - before) * 1e-6 : 0.0);
        return seconds;
      },
      [&](std::uint64_t round) {
        infeed::RandomSampler sampler(size);
        return draw_all(sampler, round, size);
      }};
#ifdef BENCH_RANDPERM
  turns.emplace_back([&](std::uint64_t) {
    const std::string text = output_of(std::string(BENCH_RANDPERM) + " " + std::to_string(size));
    return number_before(text, " s").value();
  });
#endif
  const std::vector<Series> times = interleave(bed.rounds, turns);
  add_time("FeistelSampler, 100 million indices", times[0], report);
  add_time("RandomSampler, 100 million indices", times[1], report);
  report.add({.id = "E11",
              .what = "FeistelSampler, memory",
              .unit = "MB",
              .rounds = feistel_mb,
              .better = Better::kLower,
              .must = 1.0});
  if (times.size() < 3) return;
  add_against_torch("torch.randperm by FeistelSampler, time", times[2], times[0], report);
  add_against_torch("torch.randperm by RandomSampler, time", times[2], times[1], report);
}

}  // namespace bench
