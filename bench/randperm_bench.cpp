// torch.randperm alone: what the samplers' times are set beside. Argument: how many. Prints "<seconds> s".
#include <torch/torch.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>

int main(int argc, char** argv) {
  const std::int64_t size = argc > 1 ? std::atoll(argv[1]) : 100'000'000;
  torch::manual_seed(0);
  const auto before = std::chrono::steady_clock::now();
  const torch::Tensor order = torch::randperm(size, torch::kInt64);
  const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - before;
  if (order.sum().item<std::int64_t>() != size * (size - 1) / 2) return 1;
  std::printf("%.4f s\n", passed.count());
}
