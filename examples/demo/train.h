#pragma once
/// Trains with worker processes and tells how it goes.

#include <cstdint>
#include <string>
#include <vector>

#include "infeed/infeed.h"
#include "measure.h"

namespace demo {

inline constexpr std::int64_t kBatchSize = 64;
inline constexpr int kImageSide = 64;  ///< pixels, of what the model sees

/// The folder of images as training wants it: random crops and flips, normalised, float32 [3, 64, 64].
[[nodiscard]] infeed::ImageFolder open_training_set(const std::string& root);
/// The same without randomness: the middle of each image.
[[nodiscard]] infeed::ImageFolder open_validation_set(const std::string& root);

/// Loader options that training and every row of the sweep share.
[[nodiscard]] infeed::LoaderOptions training_loader(infeed::WorkerKind kind, int workers, std::uint64_t seed);

struct TrainOptions {
  std::string data;  ///< folder with train/ and val/
  int epochs = 6;
  int workers = 2;
  std::uint64_t seed = 0;
};

struct EpochReport {
  double loss = 0;      ///< mean over the epoch
  double accuracy = 0;  ///< share of the validation images, in [0, 1]
  double samples_per_s = 0;
  double waited_share = 0;  ///< of the epoch's time: the trainer had no batch
  double seconds = 0;       ///< without validation
};

struct TrainReport {
  std::vector<EpochReport> epochs;
  std::uint64_t peak_bytes = 0;  ///< PSS of all processes
  double seconds = 0;
  std::string verdict;  ///< of the last epoch
};

/// Prints a line per epoch. Throws what the loader throws, and Stopped.
[[nodiscard]] TrainReport train(const TrainOptions& options);

}  // namespace demo
