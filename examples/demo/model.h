#pragma once
/// The model that the demo trains, and one step of its training.

#include <cstdint>

#include "infeed/batch/batch.h"
#include "infeed/train/train.h"

namespace demo {

/// Three blocks of convolution, batch norm, ReLU and pooling, then a linear layer: float32 [N, 3, 64, 64] to logits
/// [N, classes]. The blocks have `width`, 2 `width` and 4 `width` channels.
[[nodiscard]] infeed::nn::Sequential make_model(int classes, int width);
[[nodiscard]] std::int64_t count_parameters(const infeed::nn::Module& model);

/// SGD with momentum; the learning rate rises for a quarter of the run, then falls to 0 along a cosine ("1cycle").
class Trainer {
 public:
  struct Options {
    int classes = 10;
    int width = 32;
    std::int64_t total_steps = 1;
    double max_lr = 0.1;
    std::uint64_t seed = 0;  ///< of the initial weights
  };
  explicit Trainer(const Options& options);

  /// Forward, backward and update on `image` and `label`; returns the batch's loss.
  double step(const infeed::Batch& batch);
  /// How many of the batch's labels the model hits.
  [[nodiscard]] std::int64_t count_hits(const infeed::Batch& batch);
  [[nodiscard]] const infeed::nn::Sequential& model() const { return model_; }

 private:
  [[nodiscard]] double learning_rate() const;

  Options options_;
  infeed::nn::Sequential model_;
  infeed::optim::SGD sgd_;
  std::int64_t steps_ = 0;
};

}  // namespace demo
