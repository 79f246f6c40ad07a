#include "model.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace demo {
namespace {

namespace nn = infeed::nn;
using infeed::Tensor;

constexpr double kWarmUpShare = 0.25;
constexpr double kFirstLrShare = 0.1;  // of max_lr

void add_block(nn::Sequential& model, std::int64_t in, std::int64_t out) {
  model.push_back(nn::Conv2d({.in_channels = in, .out_channels = out, .kernel_size = 3, .padding = 1, .bias = false}));
  model.push_back(nn::BatchNorm2d(out));
  model.push_back(nn::ReLU());
  model.push_back(nn::MaxPool2d(2));
}

// The batch's memory itself: the tensor holds its owner.
Tensor tensor_of(const infeed::Batch& batch, const char* field) {
  return Tensor::from_array(batch.at(field), batch.owner());
}

nn::Sequential seeded_model(const Trainer::Options& options) {
  infeed::manual_seed(options.seed);
  return make_model(options.classes, options.width);
}

}  // namespace

nn::Sequential make_model(int classes, int width) {
  nn::Sequential model;
  add_block(model, 3, width);
  add_block(model, width, 2 * width);
  add_block(model, 2 * width, 4 * width);
  model.push_back(nn::AdaptiveAvgPool2d(1));
  model.push_back(nn::Flatten());
  model.push_back(nn::Linear(4 * width, classes));
  return model;
}

std::int64_t count_parameters(const nn::Module& model) {
  std::int64_t count = 0;
  for (const Tensor& parameter : model.parameters()) count += parameter.numel();
  return count;
}

Trainer::Trainer(const Options& options)
    : options_(options),
      model_(seeded_model(options)),
      sgd_(model_.parameters(), {.momentum = 0.9, .weight_decay = 5e-4}) {}

double Trainer::learning_rate() const {
  const double t = std::min(1.0, static_cast<double>(steps_) / static_cast<double>(options_.total_steps));
  const auto cosine = [](double from, double to, double share) {
    return to + (from - to) * 0.5 * (1 + std::cos(std::numbers::pi * share));
  };
  const double lr = t < kWarmUpShare ? cosine(kFirstLrShare, 1, t / kWarmUpShare)
                                     : cosine(1, 0, (t - kWarmUpShare) / (1 - kWarmUpShare));
  return lr * options_.max_lr;
}

double Trainer::step(const infeed::Batch& batch) {
  model_.train();
  sgd_.param_groups().front().options.lr = learning_rate();
  sgd_.zero_grad();
  const Tensor loss = nn::cross_entropy(model_(tensor_of(batch, "image")), tensor_of(batch, "label"));
  loss.backward();
  sgd_.step();
  ++steps_;
  return loss.item();
}

std::int64_t Trainer::count_hits(const infeed::Batch& batch) {
  const infeed::NoGradGuard no_grad;
  model_.eval();
  const Tensor logits = model_(tensor_of(batch, "image"));
  const auto classes = logits.size(1);
  const auto* labels = batch.at("label").as<std::int64_t>();
  std::int64_t hits = 0;
  for (std::int64_t i = 0; i < batch.size(); ++i) {
    const float* row = logits.data<float>() + i * classes;
    hits += std::max_element(row, row + classes) - row == labels[i] ? 1 : 0;
  }
  return hits;
}

}  // namespace demo
