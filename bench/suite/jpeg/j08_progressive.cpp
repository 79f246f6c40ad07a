// What does a progressive file cost as it is, and written losslessly as baseline (`infeed prepare`)? Whole pictures.
#include "decode/coefficients.h"
#include "machine.h"
#include "pictures.h"
#include "rows.h"

namespace bench::jpeg {
namespace {

Turn whole(const Files& files) {
  return [&files](std::uint64_t) {
    infeed::JpegSource source;
    infeed::PixelBuffer buffer;
    const double before = thread_cpu_s();
    for (const Bytes& file : files) {
      const infeed::StoredInfo info = source.open(file, {});
      source.decode({0, 0, info.width, info.height}, info.width, info.height, buffer);
    }
    return (thread_cpu_s() - before) / static_cast<double>(files.size()) * 1e6;
  };
}

}  // namespace

void progressive(const Bed& bed, Report& report) {
  Files files, transcoded;
  for (std::uint64_t seed = 0; seed < bed.size<std::uint64_t>(40, 2); ++seed) {
    files.push_back(infeed::testing::make_jpeg({.width = 500,
                                                .height = 375,
                                                .sampling = {infeed::testing::Sampling{2, 2}},
                                                .progressive = true,
                                                .grain = 17,
                                                .seed = seed}));
    transcoded.push_back(infeed::testing::to_baseline(files.back()));
  }
  const std::vector<Series> us = interleave(bed.rounds, {whole(transcoded), whole(files)});
  report.add({.id = "J8",
              .what = "decode of a progressive picture written as baseline, CPU",
              .unit = "us",
              .rounds = us[0],
              .better = Better::kLower});
  report.add({.id = "J8",
              .what = "the progressive picture's time by that",
              .unit = "x",
              .rounds = ratio(us[1], us[0]),
              .must = 3.6});
}

}  // namespace bench::jpeg
