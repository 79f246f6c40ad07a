// A small crop of a large picture: 400 x 400 of 12 megapixels, anywhere. With an index, or with restart markers at the
// end of each row of MCUs, decoding starts near the crop; libjpeg decodes all that stands above it.
#include <fmt/format.h>

#include <random>
#include <stdexcept>

#include "machine.h"
#include "pictures.h"
#include "rows.h"

namespace bench::jpeg {
namespace {

constexpr int kSide = 400;

struct Picture {
  int width, height;
  Bytes file;
};

Picture make(const Bed& bed, bool restarts) {
  Picture picture{bed.size(4000, 800), bed.size(3000, 600), {}};
  picture.file = infeed::testing::make_jpeg({.width = picture.width,
                                             .height = picture.height,
                                             .sampling = {infeed::testing::Sampling{2, 2}},
                                             .restart_blocks = restarts ? picture.width / 16 : 0,
                                             .grain = 17});
  return picture;
}

/// CPU ms a crop; the round chooses the crops.
class Cropper {
 public:
  Cropper(const Picture& picture, bool by_libjpeg, bool indexed, int crops)
      : picture_(picture), source_(by_libjpeg), indexed_(indexed), crops_(crops) {
    if (!indexed) return;
    source_.open(picture.file, {});
    source_.use_index(&index_);
    source_.decode({0, 0, picture.width, picture.height}, 1, 1, buffer_);
    if (!index_.is_complete()) throw std::runtime_error("the index is not complete");
  }
  double operator()(std::uint64_t round) {
    std::mt19937_64 random(round);
    const double before = thread_cpu_s();
    for (int i = 0; i < crops_; ++i) {
      const int x = static_cast<int>(random() % static_cast<std::uint64_t>(picture_.width - kSide + 1));
      const int y = static_cast<int>(random() % static_cast<std::uint64_t>(picture_.height - kSide + 1));
      source_.open(picture_.file, {});
      source_.use_index(indexed_ ? &index_ : nullptr);
      source_.decode({x, y, kSide, kSide}, kSide, kSide, buffer_);
    }
    return (thread_cpu_s() - before) / crops_ * 1e3;
  }

 private:
  const Picture& picture_;
  infeed::JpegSource source_;
  infeed::PixelBuffer buffer_;
  infeed::RowIndex index_;
  bool indexed_;
  int crops_;
};

void compare(const Bed& bed, bool restarts, Report& report) {
  const Picture picture = make(bed, restarts);
  const int crops = bed.size(40, 3);
  Cropper ours(picture, false, !restarts, crops), libjpegs(picture, true, false, crops);
  const std::vector<Series> ms = interleave(bed.rounds, {std::ref(ours), std::ref(libjpegs)});
  const std::string with = restarts ? "restart markers" : "an index";
  report.add({.id = "J7",
              .what = fmt::format("400 x 400 of 12 megapixels with {}, CPU a crop", with),
              .unit = "ms",
              .rounds = ms[0],
              .better = Better::kLower});
  report.add({.id = "J7",
              .what = fmt::format("libjpeg-turbo's window decode of the same file, its time by ours, {}", with),
              .unit = "x",
              .rounds = ratio(ms[1], ms[0]),
              .must = 8,
              .aim = 15});
}

}  // namespace

void large(const Bed& bed, Report& report) {
  compare(bed, false, report);
  compare(bed, true, report);
}

}  // namespace bench::jpeg
