// How long a random crop's decode takes, before and after.

#include <algorithm>
#include <chrono>

#include "base/hash.h"
#include "dataset/index_cache.h"
#include "decode/decoder.h"
#include "infeed/base/error.h"
#include "infeed/transform/compose.h"
#include "tools/prepare_parts.h"
#include "transform/plan.h"

namespace infeed {
namespace {

constexpr std::size_t kMeasured = 32;
constexpr int kRounds = 4;  // the fastest of each counts, before and after in turn
constexpr int kCrop = 224;

/// A crop that depends on the picture's number, decoded; us.
double decode_us(Decoder& decoder, std::span<const std::byte> bytes, std::uint64_t number, RowIndex* rows) {
  using Clock = std::chrono::steady_clock;
  static const Compose kTransforms{random_resized_crop(kCrop)};
  const auto begin = Clock::now();
  const ImageInfo info = decoder.open(bytes, {});
  if (rows != nullptr && !rows->none) decoder.use_index(*rows);
  const FusedPlan plan = plan_sample(kTransforms, info.width, info.height, Philox(0, 0, number));
  static_cast<void>(decoder.decode(plan.window, kCrop, kCrop));
  return std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
}

/// Means over what could be measured.
class Means {
 public:
  template <typename Before, typename After>
  void add(const Before& before, const After& after) {
    double best_before = before(), best_after = after();
    for (int round = 1; round < kRounds; ++round) {
      best_before = std::min(best_before, before());
      best_after = std::min(best_after, after());
    }
    before_ += best_before;
    after_ += best_after;
    ++count_;
  }
  void store(PrepareSummary& summary) const {
    if (count_ == 0) return;
    summary.decode_us_before = before_ / count_;
    summary.decode_us_after = after_ / count_;
  }

 private:
  double before_ = 0, after_ = 0;
  int count_ = 0;
};

}  // namespace

void measure_index(const std::vector<Picture>& pictures, const std::string& path, PrepareSummary& summary) {
  std::vector<std::uint64_t> names;
  std::vector<Picture> some;
  const std::size_t step = std::max<std::size_t>(1, pictures.size() / kMeasured);
  for (std::size_t i = 0; i < pictures.size(); i += step) {
    some.push_back(pictures[i]);
    names.push_back(hash64(pictures[i].name));
  }
  const auto cache = IndexCache::open(path, names);
  Decoder decoder;
  std::vector<std::byte> buffer;
  Means means;
  IndexRecord record;
  for (std::size_t i = 0; i < some.size(); ++i) {
    if (!cache->read(static_cast<std::int64_t>(i), record) || record.rows.none) continue;
    try {
      const auto bytes = read_picture(some[i], buffer).bytes;
      means.add([&] { return decode_us(decoder, bytes, i, nullptr); },
                [&] { return decode_us(decoder, bytes, i, &record.rows); });
    } catch (const Error&) {  // it is gone since, or was never good: the run has said so
    }
  }
  means.store(summary);
}

void measure_files(const std::vector<std::pair<std::string, std::string>>& files, PrepareSummary& summary) {
  Decoder decoder;
  std::vector<std::byte> buffer, other;
  Means means;
  const std::size_t step = std::max<std::size_t>(1, files.size() / kMeasured);
  for (std::size_t i = 0; i < files.size(); i += step) {
    try {
      const auto before = read_picture({{}, files[i].first}, buffer).bytes;
      const auto after = read_picture({{}, files[i].second}, other).bytes;
      means.add([&] { return decode_us(decoder, before, i, nullptr); },
                [&] { return decode_us(decoder, after, i, nullptr); });
    } catch (const Error&) {
    }
  }
  means.store(summary);
}

}  // namespace infeed
