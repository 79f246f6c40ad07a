#pragma once
/// LSTM (Hochreiter and Schmidhuber, 1997; gates as Gers et al., 2000) and GRU (Cho et al., 2014), step by step over
/// linear layers.

#include "infeed/train/nn/functional.h"
#include "infeed/train/nn/module.h"

namespace infeed::nn {

struct RecurrentOptions {
  std::int64_t input_size;
  std::int64_t hidden_size;     ///< H
  std::int64_t num_layers = 1;  ///< each layer reads the outputs of the one before
  bool bias = true;
  bool batch_first = false;
  double dropout = 0.0;  ///< of the outputs of all layers but the last
  bool bidirectional = false;
};

struct RecurrentResult {
  Tensor output;              ///< the last layer's h at every step, [L, N, directions H]
  std::vector<Tensor> state;  ///< after the last step, each [num_layers directions, N, H]
};

/// What LSTM and GRU share. x: [L, N, input_size], or [N, L, input_size] if batch_first; without a batch
/// [L, input_size]. Parameters are named as PyTorch's: weight_ih_l0, weight_hh_l0, bias_ih_l0, bias_hh_l0, ...,
/// with _reverse for the second direction. They begin within +-1 / sqrt(H).
class INFEED_API Recurrent : public Module {
 public:
  [[nodiscard]] Tensor forward(const Tensor& x) override { return forward(x, {}).output; }
  /// Begins at `state`, zeros where it is empty.
  [[nodiscard]] RecurrentResult forward(const Tensor& x, const std::vector<Tensor>& state);

 protected:
  Recurrent(const RecurrentOptions& options, std::int64_t gates, std::size_t states);
  /// The next state, h first, from the gates' shares of input and h ([N, gates H]) and the state ([N, H] each).
  [[nodiscard]] virtual std::vector<Tensor> step(const Tensor& from_input, const Tensor& from_hidden,
                                                 const std::vector<Tensor>& state) const = 0;

 private:
  struct Weights {
    Tensor input, hidden, input_bias, hidden_bias;
  };
  [[nodiscard]] Tensor run(const Tensor& x, const Weights& weights, bool reverse, std::vector<Tensor>& state) const;

  RecurrentOptions options_;
  std::size_t states_;
  std::vector<Weights> weights_;  // of each direction of each layer
};

/// State: h, c. i, f, g, o of x and h; c = sigmoid(f) c + sigmoid(i) tanh(g); h = sigmoid(o) tanh(c).
class INFEED_API LSTM final : public Recurrent {
 public:
  explicit LSTM(const RecurrentOptions& options) : Recurrent(options, 4, 2) {}

 protected:
  [[nodiscard]] std::vector<Tensor> step(const Tensor& from_input, const Tensor& from_hidden,
                                         const std::vector<Tensor>& state) const override;
};

/// State: h. r, z of x and h; n = tanh(n of x + sigmoid(r) n of h); h = n + sigmoid(z) (h - n).
class INFEED_API GRU final : public Recurrent {
 public:
  explicit GRU(const RecurrentOptions& options) : Recurrent(options, 3, 1) {}

 protected:
  [[nodiscard]] std::vector<Tensor> step(const Tensor& from_input, const Tensor& from_hidden,
                                         const std::vector<Tensor>& state) const override;
};

}  // namespace infeed::nn
