// The companion library: a batch becomes a Tensor without a copy, a small network learns from it.
#include <infeed/infeed.h>
#include <infeed/train/train.h>

#include <cstdio>

// Points of a plane; the label says whether a point lies inside the circle.
class Circle final : public infeed::Dataset {
 public:
  std::int64_t size() const override { return 4'096; }
  const infeed::Schema& schema() const override { return schema_; }
  void read(infeed::Row& row) const override {
    infeed::Philox random = row.context().rng();
    const double x = random.uniform(-1, 1), y = random.uniform(-1, 1);
    row.at("point").as<float>()[0] = static_cast<float>(x);
    row.at("point").as<float>()[1] = static_cast<float>(y);
    *row.at("label").as<std::int64_t>() = x * x + y * y < 0.6 ? 1 : 0;
  }

 private:
  infeed::Schema schema_{{"point", infeed::DType::kFloat32, {2}}, {"label", infeed::DType::kInt64, {}}};
};

int main() {
  namespace nn = infeed::nn;
  const Circle dataset;
  infeed::Loader loader(dataset, {.batch_size = 64, .shuffle = true, .num_workers = 2});
  nn::Sequential net(nn::Linear(2, 32), nn::ReLU(), nn::Linear(32, 2));
  infeed::optim::SGD sgd(net.parameters(), {.lr = 0.2, .momentum = 0.9});

  double mean = 0;
  for (int epoch = 0; epoch < 5; ++epoch) {
    mean = 0;
    for (const infeed::Batch& batch : loader) {
      // The tensors view the batch's memory and keep it through its owner.
      const auto point = infeed::Tensor::from_array(batch.at("point"), batch.owner());
      const auto label = infeed::Tensor::from_array(batch.at("label"), batch.owner());
      sgd.zero_grad();
      const infeed::Tensor loss = nn::cross_entropy(net(point), label);
      loss.backward();
      sgd.step();
      mean += loss.item() / static_cast<double>(loader.size().value());
    }
    std::printf("epoch %d: loss %.4f\n", epoch + 1, mean);
  }
  return mean < 0.2 ? 0 : 1;
}
