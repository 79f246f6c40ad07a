// What the blocks that use LibTorch take as given, beside prelude.h.
#pragma once

#include <infeed/torch/torch.h>
#include <torch/torch.h>

#include <string>
#include <tuple>

class MyDataset : public torch::data::Dataset<MyDataset> {
 public:
  torch::data::Example<> get(std::size_t index) override;
  torch::optional<std::size_t> size() const override;
};
