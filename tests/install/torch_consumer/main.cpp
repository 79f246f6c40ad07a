// A stranger's LibTorch trainer: only what is installed.
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <infeed/infeed.h>
#include <infeed/torch/tensor.h>

int main() {
  const infeed::SyntheticDataset dataset(10, {{"index", infeed::DType::kInt64, {}}});
  infeed::Loader loader(dataset, {.batch_size = 10, .num_workers = 1});
  const at::Tensor index = infeed::torch::to_tensor(loader.next()->at("index"));
  return at::equal(index, at::arange(10)) ? 0 : 1;
}
