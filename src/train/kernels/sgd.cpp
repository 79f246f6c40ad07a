#include "train/kernels/sgd.h"

#include "train/kernels/loop.h"

namespace infeed::kernels {
namespace {

float& value(std::byte* data, std::int64_t offset) noexcept { return *reinterpret_cast<float*>(data + offset); }

float directed(const SgdStep& s, float grad, float param) noexcept {
  return (s.maximize ? -grad : grad) + s.weight_decay * param;
}

void plain_run(const Run<2>& run, const SgdStep& s) {
#pragma GCC ivdep
  for (std::int64_t i = 0; i < run.count; ++i) {
    float& param = value(run.data[0], i * run.stride[0]);
    param -= s.lr * directed(s, value(run.data[1], i * run.stride[1]), param);
  }
}

template <bool kFirst, bool kNesterov>
void momentum_run(const Run<3>& run, const SgdStep& s) {
#pragma GCC ivdep
  for (std::int64_t i = 0; i < run.count; ++i) {
    float& param = value(run.data[0], i * run.stride[0]);
    float& buffer = value(run.data[2], i * run.stride[2]);
    const float grad = directed(s, value(run.data[1], i * run.stride[1]), param);
    buffer = kFirst ? grad : s.momentum * buffer + (1.0f - s.dampening) * grad;
    param -= s.lr * (kNesterov ? grad + s.momentum * buffer : buffer);
  }
}

}  // namespace

void sgd_step(const Tensor& param, const Tensor& grad, const Tensor& buffer, const SgdStep& step) {
  if (!buffer.defined()) {
    const Loop<2> loop(param.shape(), {&param, &grad}, {param.strides(), grad.strides()});
    loop.run([&](const Run<2>& run) { plain_run(run, step); });
    return;
  }
  const Loop<3> loop(param.shape(), {&param, &grad, &buffer}, {param.strides(), grad.strides(), buffer.strides()});
  loop.run([&](const Run<3>& run) {
    if (step.first) return step.nesterov ? momentum_run<true, true>(run, step) : momentum_run<true, false>(run, step);
    step.nesterov ? momentum_run<false, true>(run, step) : momentum_run<false, false>(run, step);
  });
}

}  // namespace infeed::kernels
