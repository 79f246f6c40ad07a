#pragma once
/// One recorded operation: how gradients of its outputs become gradients of its inputs.

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "infeed/base/export.h"
#include "infeed/train/autograd/few.h"
#include "infeed/train/tensor/tensor.h"

namespace infeed {

class Node;

/// A tensor in a list of arguments. It does not count as a reference: good until the end of the call.
struct Operand {
  Operand(const Tensor& of) noexcept : tensor(&of) {}  // NOLINT: implicit on purpose
  const Tensor* tensor;
};
using Operands = std::initializer_list<Operand>;

/// Where the gradient of one input goes; without a node it is not needed.
struct Edge {
  std::shared_ptr<Node> node;
  int output_nr = 0;  ///< which output of `node` the input was
};

/// A tensor that backward() needs, with its version. An input is kept itself; an output outside the graph, so that no
/// cycle arises, and put back into it when it is read under create_graph.
class INFEED_API SavedTensor {
 public:
  SavedTensor() = default;
  /// `output_nr`: which output of the saving node it is; -1 for an input.
  SavedTensor(const Tensor& tensor, int output_nr);
  /// Throws RuntimeError if the tensor was written in place since, or was freed by an earlier backward().
  [[nodiscard]] Tensor unpack(const Node& owner) const;
  void release() noexcept { *this = SavedTensor(); }

 private:
  Tensor tensor_;
  std::uint32_t version_ = 0;
  int output_nr_ = -1;
  bool saved_undefined_ = false;
};

/// What a gradient of one output must look like.
struct OutputInfo {
  Shape shape;
  DType dtype = DType::kFloat32;
  DeviceId device;
};

/// Called after a node ran, with the gradients it sends and those it got; may replace what it sends.
using NodeHook = std::function<void(std::span<Tensor> grad_inputs, std::span<const Tensor> grad_outputs)>;
/// Called before a node runs; may replace what it gets.
using NodePreHook = std::function<void(std::span<Tensor> grad_outputs)>;

/// A vertex of the graph. Made by an operation, owned by the tensors that it made and by the nodes after it.
///
///   loss --grad_fn--> MeanBackward0 --next--> MulBackward0 --next--> AccumulateGrad --> leaf.grad
///
/// Numbers grow with creation, so a node's is always greater than those of the nodes it leads to: backward() visits
/// in falling order, which is a topological order. Threads: built by one thread; backward() by one at a time.
class INFEED_API Node : public std::enable_shared_from_this<Node> {
 public:
  explicit Node(std::string_view name);  ///< a literal; a subclass with another one overrides name()
  virtual ~Node();                       ///< frees long chains without recursion
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  /// `grad_outputs`: one per output, undefined where nothing flowed. Sets `grad_inputs`, one per edge, where
  /// needs_input_grad says so; leaving one undefined means zero. Broadcast gradients are summed to the input's shape
  /// and converted to its dtype by the caller. Grad mode is on only under create_graph.
  virtual void backward(std::span<Tensor> grad_outputs, std::span<Tensor> grad_inputs) = 0;
  [[nodiscard]] virtual std::string_view name() const noexcept { return name_; }
  /// Frees what was saved; a later backward() through this node is an error if it saved anything.
  virtual void release() noexcept;
  /// The leaf of an AccumulateGrad; undefined for others.
  [[nodiscard]] virtual Tensor variable() const { return {}; }

  /// Keeps `tensors`; those among `outputs` as outputs.
  void save(Operands tensors, std::span<const Tensor> outputs = {});
  [[nodiscard]] Tensor saved(int i) const { return saved_[static_cast<std::size_t>(i)].unpack(*this); }
  [[nodiscard]] int num_saved() const noexcept { return static_cast<int>(saved_.size()); }

  [[nodiscard]] bool needs_input_grad(int i) const noexcept {
    return next_[static_cast<std::size_t>(i)].node != nullptr;
  }
  [[nodiscard]] std::uint64_t number() const noexcept { return number_; }
  [[nodiscard]] std::span<const Edge> next() const noexcept { return {next_.data(), next_.size()}; }
  [[nodiscard]] int num_outputs() const noexcept { return static_cast<int>(outputs_.size()); }
  [[nodiscard]] const OutputInfo& output(int i) const { return outputs_[static_cast<std::size_t>(i)]; }

  /// Puts this node behind `inputs`; gives it its number. Undefined inputs have an edge to nowhere.
  void set_inputs(std::span<const Tensor> inputs);
  void set_inputs(Operands inputs);
  /// Makes `output` a result of this node, which then requires_grad.
  void add_output(const Tensor& output);
  /// The same without a tensor (for outputs that nothing will differentiate).
  void add_output(const OutputInfo& info) { outputs_.push_back(info); }

  HookHandle register_tensor_hook(int output_nr, TensorHook hook);
  void retain_grad(int output_nr, std::weak_ptr<TensorImpl> tensor);
  /// Hooks of a whole node, in order; the number removes one again.
  std::uint64_t register_hook(NodeHook hook);
  std::uint64_t register_prehook(NodePreHook hook);
  void remove_hook(std::uint64_t id);

  /// Where the forward call was made; empty unless it was recorded in anomaly mode.
  [[nodiscard]] const std::string& trace() const;

 private:
  friend class Backward;
  struct Extras;
  Extras& extras();

  std::string_view name_;
  std::uint64_t number_ = 0;
  Few<Edge, 3> next_;
  Few<OutputInfo, 1> outputs_;
  Few<SavedTensor, 2> saved_;
  std::unique_ptr<Extras> extras_;
};

/// True where an operation on these must record a node.
[[nodiscard]] INFEED_API bool needs_graph(std::span<const Tensor> inputs) noexcept;
[[nodiscard]] INFEED_API bool needs_graph(Operands inputs) noexcept;

/// Where the gradient of `tensor` goes: its grad_fn, or a leaf's accumulator, made on first use.
[[nodiscard]] INFEED_API Edge gradient_edge(const Tensor& tensor);

}  // namespace infeed
