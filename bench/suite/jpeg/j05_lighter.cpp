// Is the gain there for files with fewer bits a pixel, where the entropy decoder has less to do? The W1 pictures encoded
// anew at quality 75, and blurred; W1a with the same resize on both sides, the rows compared.
#include <fmt/format.h>

#include "pictures.h"
#include "rows.h"

namespace bench::jpeg {
namespace {

void compare(const Bed& bed, const std::string& name, const Files& files, Report& report) {
  const infeed::Compose chain = w1a_chain();
  SampleCost cost(files, chain);
  const std::vector<Series> us = interleave(bed.rounds, {cost.contestant(false), cost.contestant(true)});
  report.add({.id = "J5",
              .what = fmt::format("W1a decode + transform, {}, {:.0f} kB, CPU a sample", name, mean_kb(files)),
              .unit = "us",
              .rounds = us[0],
              .better = Better::kLower});
  report.add({.id = "J5",
              .what = fmt::format("the same with libjpeg-turbo's window decode: its time by ours, {}", name),
              .unit = "x",
              .rounds = ratio(us[1], us[0]),
              .must = 1.6,
              .aim = 2.0});
}

}  // namespace

void lighter(const Bed& bed, Report& report) {
  const Files files = load(bed.images, bed.size<std::size_t>(200, 5));
  compare(bed, "quality 75", encoded_anew(files, 75, false), report);
  compare(bed, "blurred", encoded_anew(files, 90, true), report);
}

}  // namespace bench::jpeg
