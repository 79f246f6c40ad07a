// One training step of the demo's CNN: conv 3-32-64-128, batch norm, ReLU, pool, linear; 64 x 64, batch 64, SGD with
// momentum. Ours against LibTorch (NCHW and channels_last), interleaved, so that both meet the same machine. Read: the
// ratio of medians, ours / LibTorch channels_last. Below 1 we are faster; 0.75 is aimed at. A fast wrong step is no
// result: both losses are printed and must fall alike.
#include <torch/torch.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <vector>

#include "infeed/train/tensor/allocator.h"
#include "infeed/train/train.h"

namespace {

constexpr std::int64_t kBatch = 64;
constexpr std::int64_t kSide = 64;
constexpr int kStepsPerTurn = 3;

double wall_ms() {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Of all threads, spinning included: with one thread, the figure to read on a busy machine.
double cpu_ms() { return static_cast<double>(std::clock()) * 1e3 / CLOCKS_PER_SEC; }

infeed::nn::Conv2d conv(std::int64_t in, std::int64_t out) {
  return infeed::nn::Conv2d({.in_channels = in, .out_channels = out, .kernel_size = 3, .padding = 1});
}

struct Ours {
  double step() {
    sgd.zero_grad();
    const infeed::Tensor loss = infeed::nn::cross_entropy(net(image), label);
    loss.backward();
    sgd.step();
    return loss.item();
  }
  infeed::Tensor image, label;
  infeed::nn::Sequential net{conv(3, 32),
                             infeed::nn::BatchNorm2d(32),
                             infeed::nn::ReLU(),
                             infeed::nn::MaxPool2d(2),
                             conv(32, 64),
                             infeed::nn::BatchNorm2d(64),
                             infeed::nn::ReLU(),
                             infeed::nn::MaxPool2d(2),
                             conv(64, 128),
                             infeed::nn::BatchNorm2d(128),
                             infeed::nn::ReLU(),
                             infeed::nn::MaxPool2d(2),
                             infeed::nn::AdaptiveAvgPool2d(1),
                             infeed::nn::Flatten(),
                             infeed::nn::Linear(128, 10)};
  infeed::optim::SGD sgd{net.parameters(), {.lr = 0.01, .momentum = 0.9}};
};

torch::nn::Conv2d torch_conv(std::int64_t in, std::int64_t out) {
  return torch::nn::Conv2d(torch::nn::Conv2dOptions(in, out, 3).padding(1));
}

struct Theirs {
  Theirs(torch::Tensor x, torch::Tensor y, torch::MemoryFormat memory_format)
      : image(x), label(y), format(memory_format) {
    for (auto& parameter : net->parameters()) {
      if (parameter.dim() == 4) parameter.set_data(parameter.contiguous(format));
    }
  }
  double step() {
    sgd.zero_grad();
    torch::Tensor loss = torch::nn::functional::cross_entropy(net->forward(image.contiguous(format)), label);
    loss.backward();
    sgd.step();
    return loss.item<double>();
  }
  torch::Tensor image, label;
  torch::MemoryFormat format;
  torch::nn::Sequential net{torch_conv(3, 32),
                            torch::nn::BatchNorm2d(32),
                            torch::nn::ReLU(),
                            torch::nn::MaxPool2d(2),
                            torch_conv(32, 64),
                            torch::nn::BatchNorm2d(64),
                            torch::nn::ReLU(),
                            torch::nn::MaxPool2d(2),
                            torch_conv(64, 128),
                            torch::nn::BatchNorm2d(128),
                            torch::nn::ReLU(),
                            torch::nn::MaxPool2d(2),
                            torch::nn::AdaptiveAvgPool2d(1),
                            torch::nn::Flatten(),
                            torch::nn::Linear(128, 10)};
  torch::optim::SGD sgd{net->parameters(), torch::optim::SGDOptions(0.01).momentum(0.9)};
};

struct Contestant {
  const char* name;
  std::function<double()> step;
  std::vector<double> turns;  // wall ms a step
  std::vector<double> cpu;
  double loss = 0.0;
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
  const int turns = argc > 1 ? std::atoi(argv[1]) : 10;
  const int threads = argc > 2 ? std::atoi(argv[2]) : 2;
  infeed::set_num_threads(threads);
  at::set_num_threads(threads);
  infeed::manual_seed(1);
  torch::manual_seed(1);
  const infeed::Tensor image = infeed::Tensor::randn({kBatch, 3, kSide, kSide});
  const infeed::Tensor label = infeed::Tensor::uniform({kBatch}, 0.0f, 10.0f).to(infeed::DType::kInt64);
  const torch::Tensor torch_image = torch::from_blob(image.data_ptr(), {kBatch, 3, kSide, kSide}).clone();
  const torch::Tensor torch_label = torch::from_blob(label.data_ptr(), {kBatch}, torch::kInt64).clone();
  Ours ours{image, label};
  Theirs nchw(torch_image, torch_label, torch::MemoryFormat::Contiguous);
  Theirs nhwc(torch_image, torch_label, torch::MemoryFormat::ChannelsLast);
  Contestant contestants[] = {{"infeed", [&] { return ours.step(); }, {}, {}},
                              {"LibTorch channels_last", [&] { return nhwc.step(); }, {}, {}},
                              {"LibTorch NCHW", [&] { return nchw.step(); }, {}, {}}};
  for (int turn = -1; turn < turns; ++turn) {  // the first turn warms up
    for (Contestant& contestant : contestants) {
      const double wall_before = wall_ms();
      const double cpu_before = cpu_ms();
      for (int i = 0; i < kStepsPerTurn; ++i) contestant.loss = contestant.step();
      if (turn < 0) continue;
      contestant.turns.push_back((wall_ms() - wall_before) / kStepsPerTurn);
      contestant.cpu.push_back((cpu_ms() - cpu_before) / kStepsPerTurn);
    }
  }
  for (Contestant& c : contestants) {
    const auto [least, most] = std::minmax_element(c.turns.begin(), c.turns.end());
    std::printf("%-24s %7.2f ms a step [%.2f .. %.2f], CPU %.2f ms, loss %.4f\n", c.name, median(c.turns), *least,
                *most, median(c.cpu), c.loss);
  }
  std::printf("ratio of medians: %.3f to channels_last, %.3f to NCHW; of CPU: %.3f; %d threads, LibTorch %s\n",
              median(contestants[0].turns) / median(contestants[1].turns),
              median(contestants[0].turns) / median(contestants[2].turns),
              median(contestants[0].cpu) / median(contestants[1].cpu), threads, TORCH_VERSION);
  const infeed::MemoryStats memory = infeed::host_allocator().stats();
  std::printf("infeed's tensors: peak %.1f MiB, %llu new blocks\n",
              static_cast<double>(memory.peak_in_use_bytes) / (1 << 20),
              static_cast<unsigned long long>(memory.misses));
}
