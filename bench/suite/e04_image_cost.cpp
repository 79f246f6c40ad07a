// What does a W1a sample cost on one core: reading the file, window decode, resize, flip, normalise?
// Read: us of CPU an image. INFEED_REFERENCE names a command that prints its own figure, "... us": the last counts, and
// the ratio is how much longer the reference takes.
#include <algorithm>
#include <cstdlib>
#include <stdexcept>

#include "bed.h"
#include "command.h"
#include "plain_loop.h"

namespace bench {

void image_cost(const Bed& bed, Report& report) {
  const infeed::ImageFolder dataset = w1a(bed);
  const std::vector<std::int64_t> order = sequence(std::min<std::int64_t>(dataset.size(), 700));
  PlainLoop plain(dataset, 1, 64);
  std::vector<Turn> contestants = {[&](std::uint64_t round) {
    const TurnResult turn = plain.run(order, round);
    if (turn.checksum == 0) throw std::runtime_error("the images came out black");
    return turn.cpu_s / static_cast<double>(turn.rows) * 1e6;
  }};
  const char* reference = std::getenv("INFEED_REFERENCE");
  if (reference != nullptr)
    contestants.emplace_back([&](std::uint64_t) {
      const auto us = number_before(output_of(reference), " us");
      return us ? *us : throw std::runtime_error("INFEED_REFERENCE printed no figure in us");
    });
  const std::vector<Series> cost = interleave(bed.rounds, contestants);
  report.add({.id = "E4",
              .what = "W1a read + decode + transform, one core, CPU an image",
              .unit = "us",
              .rounds = cost[0],
              .better = Better::kLower});
  if (reference == nullptr) return;
  report.add({.id = "E4",
              .what = "the same against the reference: its time by ours",
              .unit = "x",
              .rounds = ratio(cost[1], cost[0]),
              .must = 1.0,
              .aim = 1.15});
}

}  // namespace bench
