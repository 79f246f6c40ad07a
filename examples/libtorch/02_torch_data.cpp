// A dataset of torch::data's under infeed's workers. From torch::data::make_data_loader() five lines change: those marked.
#include <ATen/ATen.h>
#include <infeed/torch/data_loader.h>  // (1) before: <torch/data/dataloader.h>
#include <torch/data/datasets.h>
#include <torch/data/samplers.h>
#include <torch/data/transforms.h>

#include <cstdio>

namespace data = torch::data;

// Points of a noisy line; any dataset of yours does.
struct Line : data::datasets::Dataset<Line> {
  data::Example<> get(std::size_t index) override {
    const double x = static_cast<double>(index) / 500.0 - 1.0;
    return {at::full({1}, x), at::full({1}, 3.0 * x + 0.5) + 0.1 * at::randn({1})};
  }
  std::optional<std::size_t> size() const override { return 1000; }
};

int main() {
  at::manual_seed(1);
  auto dataset = Line().map(data::transforms::Stack<>());
  auto options = data::DataLoaderOptions(50).workers(2);
  const infeed::torch::EngineOptions engine{.max_restarts = 8};  // (2) new; may be left out
  auto loader = infeed::torch::data_loader<data::samplers::RandomSampler>(std::move(dataset), options,
                                                                          engine);  // (3) before: make_data_loader
  at::Tensor slope = at::zeros({1}).requires_grad_(), offset = at::zeros({1}).requires_grad_();
  for (int epoch = 0; epoch < 5; ++epoch) {
    for (auto& batch : *loader) {  // as before: batch.data, batch.target
      const at::Tensor loss = (batch.data * slope + offset - batch.target).square().mean();
      loss.backward();
      const at::NoGradGuard no_grad;
      for (at::Tensor* parameter : {&slope, &offset}) {
        parameter->sub_(0.3 * parameter->grad());
        parameter->mutable_grad().reset();
      }
    }
  }
  std::printf("y = %.2f x + %.2f\n", slope.item<double>(), offset.item<double>());
  const infeed::LoaderStats stats = loader->stats();  // (4) new: where the time goes
  std::printf("%s", stats.str().c_str());             // (5) and memory
  return std::abs(slope.item<double>() - 3.0) < 0.2 ? 0 : 1;
}
