#pragma once
/// The rare parts of a node: hooks, retained gradients, the place of the forward call.

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "infeed/train/autograd/node.h"
#include "train/tensor/impl.h"

namespace infeed {

struct Node::Extras {
  std::vector<std::pair<int, std::shared_ptr<HookList>>> tensor_hooks;
  std::vector<std::pair<int, std::weak_ptr<TensorImpl>>> retained;
  std::vector<std::pair<std::uint64_t, NodeHook>> hooks;
  std::vector<std::pair<std::uint64_t, NodePreHook>> prehooks;
  std::uint64_t next_id = 0;
  std::string trace;
};

/// Adds to `list`, made if absent.
HookHandle add_hook(std::shared_ptr<HookList>& list, TensorHook hook);

/// The gradient after every hook; each may replace it.
void run_hooks(const std::shared_ptr<HookList>& list, Tensor& grad);

}  // namespace infeed
