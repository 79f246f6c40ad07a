// A small CNN of LibTorch's, trained on JPEG files that infeed reads; on a GPU where there is one. Usage: 01_train_cnn [ROOT]
#include <infeed/infeed.h>
#include <infeed/torch/torch.h>
#include <torch/cuda.h>
#include <torch/nn.h>
#include <torch/optim/sgd.h>

#include <cstdio>

#include "make_images.h"  // the demo's: paints a few pictures where no folder is given

namespace nn = torch::nn;

nn::Sequential make_net() {
  const auto conv = [](int in, int out) { return nn::Conv2d(nn::Conv2dOptions(in, out, 3).padding(1)); };
  return nn::Sequential(conv(3, 16), nn::BatchNorm2d(16), nn::ReLU(), nn::MaxPool2d(2), conv(16, 32),
                        nn::BatchNorm2d(32), nn::ReLU(), nn::AdaptiveAvgPool2d(1), nn::Flatten(), nn::Linear(32, 10));
}

int main(int argc, char** argv) {
  if (argc < 2) demo::make_image_set({.root = "01-images", .train = 320, .val = 0});
  const at::Device device(torch::cuda::is_available() ? at::kCUDA : at::kCPU);

  const infeed::ImageFolder dataset(
      argc < 2 ? "01-images/train" : argv[1],
      {.transforms = {infeed::random_resized_crop(32), infeed::random_horizontal_flip(), infeed::normalize()}});
  infeed::Loader loader(dataset, {.batch_size = 32, .shuffle = true, .num_workers = 2});
  infeed::torch::Prefetcher batches(loader, device);  // on the host the loader's own memory, without a copy

  torch::manual_seed(1);
  nn::Sequential net = make_net();
  net->to(device);
  torch::optim::SGD sgd(net->parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
  double first = 0, last = 0;
  for (int epoch = 0; epoch < 3; ++epoch) {
    at::Tensor total = at::zeros({}, device);
    for (infeed::torch::TensorBatch& batch : batches) {
      sgd.zero_grad();
      const at::Tensor loss = nn::functional::cross_entropy(net->forward(batch.at("image")), batch.at("label"));
      loss.backward();
      sgd.step();
      total += loss.detach();
    }
    last = total.item<double>();
    if (epoch == 0) first = last;
    std::printf("epoch %d on %s: loss %.3f\n", epoch, device.str().c_str(), last / 10);
  }
  return last < first ? 0 : 1;
}
