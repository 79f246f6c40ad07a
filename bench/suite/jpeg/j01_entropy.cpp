// How fast are the coefficients of a whole picture decoded? Both sides read the header and leave every coefficient in
// memory: libjpeg by jpeg_read_coefficients, ours from the bytes on (scan_bytes, entropy). They are compared first.
#include <cstring>
#include <stdexcept>

#include "decode/coefficients.h"
#include "machine.h"
#include "pictures.h"
#include "rows.h"

namespace bench::jpeg {
namespace {

using infeed::CoefficientBlock;

void check_same(const Files& files) {
  infeed::testing::CoefficientReader ours;
  std::vector<CoefficientBlock> libjpegs;
  for (const Bytes& file : files) {
    if (!ours.read(file)) throw std::runtime_error("not a file for our decoder");
    infeed::testing::read_by_libjpeg(file, &libjpegs);
    const bool same = std::equal(libjpegs.begin(), libjpegs.end(), ours.blocks().begin(), ours.blocks().end(),
                                 [](const CoefficientBlock& a, const CoefficientBlock& b) {
                                   return std::memcmp(a.values, b.values, 64 * sizeof(std::int16_t)) == 0;
                                 });
    if (!same) throw std::runtime_error("our coefficients are not libjpeg's");
  }
}

template <typename Read>
Turn over(const Files& files, Read read) {
  return [&files, read](std::uint64_t) mutable {
    const double before = thread_cpu_s();
    for (const Bytes& file : files) read(file);
    return (thread_cpu_s() - before) / static_cast<double>(files.size()) * 1e6;
  };
}

}  // namespace

void entropy(const Bed& bed, Report& report) {
  const Files files = load(bed.images, bed.size<std::size_t>(200, 5));
  check_same(files);
  infeed::testing::CoefficientReader reader;
  const std::vector<Series> us =
      interleave(bed.rounds, {over(files, [&](const Bytes& file) { static_cast<void>(reader.read(file)); }),
                              over(files, [](const Bytes& file) { infeed::testing::read_by_libjpeg(file, nullptr); })});
  report.add({.id = "J1",
              .what = "entropy decode of a whole picture, CPU",
              .unit = "us",
              .rounds = us[0],
              .better = Better::kLower});
  report.add({.id = "J1",
              .what = "libjpeg-turbo's time for the same coefficients by ours",
              .unit = "x",
              .rounds = ratio(us[1], us[0]),
              .must = 2.0,
              .aim = 2.3});
}

}  // namespace bench::jpeg
