#pragma once
/// One recorded operation: how gradients of its outputs become gradients of its inputs.

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "infeed/base/export.h"
#include "infeed/train/tensor/tensor.h"

namespace infeed {

class Node;

/// Where the gradient of one input goes; without a node it is not needed.
struct Edge {
  std::shared_ptr<Node> node;
  int output_nr = 0;  ///< which output of `node` the input was
};

/// A tensor that backward() needs, outside the graph (so that no cycle arises), with its version.
class INFEED_API SavedTensor {
 public:
  SavedTensor() = default;
  explicit SavedTensor(const Tensor& tensor);
  /// Throws ConfigError if the tensor was written in place since, or was freed by an earlier backward().
  [[nodiscard]] const Tensor& get(std::string_view node_name) const;
  void release() noexcept { *this = SavedTensor(); }

 private:
  Tensor tensor_;
  std::uint32_t version_ = 0;
  bool saved_undefined_ = false;
};

/// A vertex of the graph. Made by an operation, owned by the tensors that it made and by the nodes after it.
///
///   loss --grad_fn--> Node(mean) --next--> Node(mul) --next--> AccumulateGrad --> leaf.grad
///
/// Numbers grow with creation, so a node's is always greater than those of the nodes it leads to: backward() visits
/// in falling order, which is a topological order. Threads: built by one thread; backward() by one at a time.
class INFEED_API Node {
 public:
  explicit Node(std::string_view name, int num_outputs = 1);
  virtual ~Node();  ///< frees long chains without recursion
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  /// `grad_outputs`: one per output, undefined where nothing flowed. Sets `grad_inputs`, one per edge, where
  /// needs_input_grad says so; leaving one undefined means zero. Runs with grad mode off.
  virtual void backward(std::span<Tensor> grad_outputs, std::span<Tensor> grad_inputs) = 0;

  void save(std::initializer_list<Tensor> tensors);
  [[nodiscard]] const Tensor& saved(int i) const { return saved_[static_cast<std::size_t>(i)].get(name_); }
  /// Frees what was saved; a later backward() through this node is an error.
  void release() noexcept;

  [[nodiscard]] bool needs_input_grad(int i) const noexcept {
    return next_[static_cast<std::size_t>(i)].node != nullptr;
  }
  [[nodiscard]] std::string_view name() const noexcept { return name_; }
  [[nodiscard]] std::uint64_t number() const noexcept { return number_; }
  [[nodiscard]] int num_outputs() const noexcept { return num_outputs_; }
  [[nodiscard]] const std::vector<Edge>& next() const noexcept { return next_; }
  /// Also gives the node its number.
  void set_next(std::vector<Edge> edges) noexcept;

 private:
  std::string_view name_;  // a literal
  int num_outputs_;
  std::uint64_t number_;
  std::vector<Edge> next_;
  std::vector<SavedTensor> saved_;
};

/// True where an operation on these must record a node.
[[nodiscard]] INFEED_API bool needs_graph(std::initializer_list<Tensor> inputs);

/// Puts `node` between `inputs` and `output`, which then requires_grad.
INFEED_API void connect(const std::shared_ptr<Node>& node, std::initializer_list<Tensor> inputs, const Tensor& output);

}  // namespace infeed
