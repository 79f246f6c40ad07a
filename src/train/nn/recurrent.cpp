#include "infeed/train/nn/recurrent.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "infeed/base/error.h"
#include "infeed/train/autograd/ops.h"
#include "infeed/train/nn/init.h"
#include "train/tensor/check.h"

namespace infeed::nn {

Recurrent::Recurrent(const RecurrentOptions& options, std::int64_t gates, std::size_t states)
    : options_(options), states_(states) {
  const RecurrentOptions& o = options_;
  if (o.input_size <= 0 || o.hidden_size <= 0 || o.num_layers <= 0)
    throw ConfigError(fmt::format("Recurrent: input_size {}, hidden_size {}, num_layers {}; all must be positive.",
                                  o.input_size, o.hidden_size, o.num_layers));
  const int directions = o.bidirectional ? 2 : 1;
  for (std::int64_t layer = 0; layer < o.num_layers; ++layer) {
    const std::int64_t width = layer == 0 ? o.input_size : o.hidden_size * directions;
    for (const char* way : {"", "_reverse"}) {
      if (*way != '\0' && !o.bidirectional) break;
      const auto add = [&](const char* name, const Shape& shape) {
        return register_parameter(fmt::format("{}_l{}{}", name, layer, way), Tensor::empty(shape));
      };
      Weights w;
      w.input = add("weight_ih", {gates * o.hidden_size, width});
      w.hidden = add("weight_hh", {gates * o.hidden_size, o.hidden_size});
      if (o.bias) {
        w.input_bias = add("bias_ih", {gates * o.hidden_size});
        w.hidden_bias = add("bias_hh", {gates * o.hidden_size});
      }
      weights_.push_back(std::move(w));
    }
  }
  const double bound = 1.0 / std::sqrt(static_cast<double>(o.hidden_size));
  for (Tensor& parameter : parameters()) nn::uniform_(parameter, -bound, bound);
}

// One direction of one layer over [L, N, ..]: h of every step; `state` becomes the last.
Tensor Recurrent::run(const Tensor& x, const Weights& w, bool reverse, std::vector<Tensor>& state) const {
  std::vector<Tensor> inputs = unbind(linear(x, w.input, w.input_bias));
  if (reverse) std::reverse(inputs.begin(), inputs.end());
  std::vector<Tensor> outputs;
  for (const Tensor& input : inputs) {
    state = step(input, linear(state[0], w.hidden, w.hidden_bias), state);
    outputs.push_back(state[0]);
  }
  if (reverse) std::reverse(outputs.begin(), outputs.end());
  return stack(outputs);
}

RecurrentResult Recurrent::forward(const Tensor& given, const std::vector<Tensor>& state) {
  require(given.ndim() == 2 || given.ndim() == 3, "Expected input to be 2D or 3D, got {}D instead", given.ndim());
  require(state.empty() || state.size() == states_, "the state has {} tensors, not {}", states_, state.size());
  const int batch = options_.batch_first ? 0 : 1;
  if (given.ndim() == 2) {
    std::vector<Tensor> wide;
    for (const Tensor& part : state) wide.push_back(part.unsqueeze(1));
    RecurrentResult result = forward(given.unsqueeze(batch), wide);
    for (Tensor& part : result.state) part = part.squeeze(1);
    return {result.output.squeeze(batch), std::move(result.state)};
  }
  Tensor x = options_.batch_first ? given.transpose(0, 1) : given;
  require(x.size(0) > 0, "Expected sequence length to be larger than 0");
  const std::size_t directions = options_.bidirectional ? 2 : 1;
  const Tensor zeros = Tensor::zeros({x.size(1), options_.hidden_size}, x.options());
  std::vector<std::vector<Tensor>> last(states_);
  for (std::size_t at = 0; at < weights_.size(); at += directions) {
    std::vector<Tensor> outputs;
    for (std::size_t way = 0; way < directions; ++way) {
      std::vector<Tensor> now(states_, zeros);
      for (std::size_t i = 0; i < state.size(); ++i) now[i] = state[i].select(0, static_cast<std::int64_t>(at + way));
      outputs.push_back(run(x, weights_[at + way], way == 1, now));
      for (std::size_t i = 0; i < states_; ++i) last[i].push_back(now[i]);
    }
    x = directions == 1 ? outputs[0] : cat(outputs, -1);
    if (at + directions < weights_.size()) x = dropout(x, options_.dropout, is_training());
  }
  RecurrentResult result{options_.batch_first ? x.transpose(0, 1) : x, {}};
  for (const std::vector<Tensor>& part : last) result.state.push_back(stack(part));
  return result;
}

std::vector<Tensor> LSTM::step(const Tensor& from_input, const Tensor& from_hidden,
                               const std::vector<Tensor>& state) const {
  const std::vector<Tensor> gates = chunk(from_input + from_hidden, 4, -1);  // i, f, g, o
  const Tensor c = sigmoid(gates[1]) * state[1] + sigmoid(gates[0]) * tanh(gates[2]);
  return {sigmoid(gates[3]) * tanh(c), c};
}

std::vector<Tensor> GRU::step(const Tensor& from_input, const Tensor& from_hidden,
                              const std::vector<Tensor>& state) const {
  const std::vector<Tensor> x = chunk(from_input, 3, -1);  // r, z, n
  const std::vector<Tensor> h = chunk(from_hidden, 3, -1);
  const Tensor n = tanh(x[2] + sigmoid(x[0] + h[0]) * h[2]);
  return {n + sigmoid(x[1] + h[1]) * (state[0] - n)};
}

}  // namespace infeed::nn
