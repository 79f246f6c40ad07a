// A TorchScript model that Python saved, trained here on JPEG files. Usage: 03_torchscript MODEL.pt (made by save_model.py)
#include <infeed/infeed.h>
#include <infeed/torch/tensor.h>
#include <torch/nn/functional/loss.h>
#include <torch/optim/adam.h>
#include <torch/script.h>

#include <cstdio>

#include "make_images.h"  // the demo's

int main(int argc, char** argv) {
  if (argc < 2) return std::fprintf(stderr, "usage: 03_torchscript MODEL.pt\n"), 2;
  torch::jit::Module model = torch::jit::load(argv[1]);
  std::vector<at::Tensor> parameters;
  for (const at::Tensor& parameter : model.parameters()) parameters.push_back(parameter);
  torch::optim::Adam adam(parameters, torch::optim::AdamOptions(3e-3));

  demo::make_image_set({.root = "03-images", .train = 320, .val = 0});
  const infeed::ImageFolder dataset("03-images/train",
                                    {.transforms = {infeed::random_resized_crop(32), infeed::normalize()}});
  infeed::Loader loader(dataset, {.batch_size = 32, .shuffle = true, .num_workers = 2});
  double first = 0, last = 0;
  for (int epoch = 0; epoch < 5; ++epoch) {
    last = 0;
    while (const auto batch = loader.next()) {
      adam.zero_grad();
      const at::Tensor scores = model.forward({infeed::torch::to_tensor(batch->at("image"))}).toTensor();
      const at::Tensor loss =
          torch::nn::functional::cross_entropy(scores, infeed::torch::to_tensor(batch->at("label")));
      loss.backward();
      adam.step();
      last += loss.item<double>() / 10;
    }
    if (epoch == 0) first = last;
    std::printf("epoch %d: loss %.3f\n", epoch, last);
  }
  model.save("trained.pt");  // for Python again
  return last < first ? 0 : 1;
}
