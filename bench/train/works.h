#pragma once
/// The trainings that are measured, made three times: by infeed, by LibTorch, and as a bare list of operations.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace bench {

enum class Model {
  kMlp,          ///< 784-512-512-10, ReLU, batch 256
  kTransformer,  ///< 4 layers, 256 wide, 8 heads, 256 tokens of 256 kinds, batch 16; pre-norm, GELU, no mask
  kResnet,       ///< stem 32 and max pooling, blocks of 32, 64 and 128, batch 64 at 64 x 64
  kCnn,          ///< the demo's: convolutions 32, 64, 128, batch norm, ReLU, pooling, batch 64 at 64 x 64
};
[[nodiscard]] Model model_named(const std::string& name);

constexpr std::int64_t kTokens = 256, kKinds = 256, kWidth = 256, kHeads = 8, kLayers = 4, kSequences = 16;
constexpr std::int64_t kRows = 256, kPixels = 784, kHidden = 512, kClasses = 10;
constexpr std::int64_t kImages = 64, kSide = 64;

/// What all contestants train on: normal floats, or tokens for the transformer.
struct Data {
  std::vector<float> inputs;
  std::vector<std::int64_t> tokens, labels;
};
[[nodiscard]] const Data& data_of(Model model);

/// One step of SGD with momentum; the loss. Weights start from the same seed everywhere, so losses must agree.
using Step = std::function<double()>;
[[nodiscard]] Step infeed_step(Model model);
[[nodiscard]] Step torch_step(Model model, bool channels_last);
/// The operations alone, in order, on static buffers: oneDNN's primitives and the library's loops, without graph,
/// dispatch or allocation of results. Fills its buffers once; what it computes trains nothing.
[[nodiscard]] Step bare_step(Model model);

/// `n` times one operation of 16 floats that require grad, with its node.
using Repeat = std::function<void(int n)>;
enum class Operand { kTensor, kNumber };
[[nodiscard]] Repeat infeed_multiply(Operand operand);
[[nodiscard]] Repeat torch_multiply(Operand operand);
/// Ten of them, a sum, and backward().
[[nodiscard]] Repeat infeed_chain();
[[nodiscard]] Repeat torch_chain();

void set_threads(int threads);        ///< infeed's
void set_torch_threads(int threads);  ///< LibTorch's

}  // namespace bench
