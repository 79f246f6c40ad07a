#pragma once
/// JPEG files in memory, the same for all contestants, and what a sample of them costs.

#include <cstdint>
#include <filesystem>
#include <vector>

#include "decode/jpeg.h"
#include "decode/jpeg_maker.h"
#include "infeed/transform/compose.h"
#include "rounds.h"

namespace bench {

using infeed::testing::Bytes;
using Files = std::vector<Bytes>;

/// Up to `count` of the folder's files, in the order of their names.
[[nodiscard]] Files load(const std::filesystem::path& folder, std::size_t count);
/// The same pictures, decoded and encoded anew in 4:2:0; `blur`: after a 3 x 3 binomial filter.
[[nodiscard]] Files encoded_anew(const Files& files, int quality, bool blur);
/// Thousands of bytes a file.
[[nodiscard]] double mean_kb(const Files& files);

/// CPU us a sample of what a data set's row costs once its file is read: window decode, resize, the rest of `chain`.
class SampleCost {
 public:
  SampleCost(const Files& files, const infeed::Compose& chain) : files_(files), chain_(chain) {}
  /// A turn of interleave(); the round chooses the crops. Throws std::runtime_error where a round's results differ
  /// between contestants.
  [[nodiscard]] Turn contestant(bool by_libjpeg);

 private:
  const Files& files_;
  const infeed::Compose& chain_;
  std::vector<std::uint64_t> sums_;  // by round
};

[[nodiscard]] infeed::Compose w1a_chain();
[[nodiscard]] infeed::Compose w1b_chain();

}  // namespace bench
