#pragma once
/// Backward without a kernel of its own: the forward once more, in recorded operations.

#include <vector>

#include "infeed/train/autograd/backward.h"
#include "infeed/train/autograd/grad_mode.h"
#include "train/autograd/record.h"

namespace infeed {

/// Gives the gradients of the node's first inputs by differentiating `forward(values)`, where `values` are what the
/// node took (saved); an undefined one stays undefined. Under create_graph the result is itself recorded.
template <class Forward>
void replay(const Pass& p, std::vector<Tensor> values, Forward&& forward) {
  const bool create = grad_enabled();
  const EnableGradGuard recording;
  std::vector<Tensor> wanted;
  std::vector<int> places;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!values[i].defined() || !p.needs(static_cast<int>(i))) continue;
    // Under create_graph a view: inputs may be one tensor, or made from each other.
    values[i] = create ? values[i].expand(values[i].shape()) : values[i].detach().set_requires_grad();
    wanted.push_back(values[i]);
    places.push_back(static_cast<int>(i));
  }
  const Tensor y = forward(values);
  std::vector<Tensor> grads = grad({&y, 1}, wanted, {p.g()}, {.create_graph = create, .allow_unused = true});
  for (std::size_t i = 0; i < places.size(); ++i) p.give(places[i], grads[i]);
}

}  // namespace infeed
