// A stranger's training without a framework: only what is installed.
#include <infeed/infeed.h>
#include <infeed/train/train.h>

#include <cstdio>

int main() {
  namespace nn = infeed::nn;
  const infeed::SyntheticDataset dataset(
      256, {{"image", infeed::DType::kFloat32, {3, 8, 8}}, {"index", infeed::DType::kInt64, {}}});
  infeed::Loader loader(dataset, {.batch_size = 64, .num_workers = 2});
  nn::Sequential net(nn::Conv2d({.in_channels = 3, .out_channels = 4, .kernel_size = 3}), nn::ReLU(), nn::Flatten(),
                     nn::Linear(4 * 6 * 6, 2));
  infeed::optim::SGD sgd(net.parameters(), {.lr = 0.01});
  int steps = 0;
  while (const auto batch = loader.next()) {
    const auto image = infeed::Tensor::from_array(batch->at("image"), batch->owner());
    const auto index = infeed::Tensor::from_array(batch->at("index"), batch->owner());
    if (static_cast<const void*>(image.data_ptr()) != batch->at("image").data) return 1;  // no copy
    sgd.zero_grad();
    nn::cross_entropy(net(image), remainder(index, 2)).backward();
    sgd.step();
    ++steps;
  }
  std::printf("%d steps\n", steps);
  return steps == 4 ? 0 : 1;
}
