// W1b, shorter side 256 and centre crop 224 to uint8: what is our decoder worth where half of a picture is wanted, all
// in its middle? Both sides resize by the same kernel; files are in memory; the rows are compared.
#include "pictures.h"
#include "rows.h"

namespace bench::jpeg {

void evaluation(const Bed& bed, Report& report) {
  const Files files = load(bed.images, bed.size<std::size_t>(300, 5));
  const infeed::Compose chain = w1b_chain();
  SampleCost cost(files, chain);
  const std::vector<Series> us = interleave(bed.rounds, {cost.contestant(false), cost.contestant(true)});
  report.add({.id = "J3",
              .what = "W1b decode + transform, exact, CPU a sample",
              .unit = "us",
              .rounds = us[0],
              .better = Better::kLower});
  report.add({.id = "J3",
              .what = "W1b with libjpeg-turbo's window decode: its time by ours",
              .unit = "x",
              .rounds = ratio(us[1], us[0]),
              .must = 1.5,
              .aim = 1.65});
}

}  // namespace bench::jpeg
