#pragma once
/// Vertices of the graph as Python sees them: each node's type is named after it (`AddBackward0`).

#include <memory>

#include "convert.h"
#include "infeed/train/autograd/node.h"

namespace infeed::python {

struct NodeObject {
  std::shared_ptr<Node> node;
};

/// None for no node.
[[nodiscard]] nb::object node_object(const std::shared_ptr<Node>& node);

}  // namespace infeed::python
