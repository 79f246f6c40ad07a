#pragma once
/// Rows of equal shape, one on the other.

#include "infeed/collate/collate.h"

namespace infeed {

/// Each field becomes one array [B, ...]. Variable fields may be used if their shapes happen to agree within each
/// batch; DataError else, naming the field, the row and both shapes. An empty batch has size 0 in every variable
/// dimension.
class INFEED_API StackCollate final : public Collate {
 public:
  void operator()(const Schema& schema, std::span<const std::vector<ArrayView>> rows,
                  CollateOutput& out) const override;
  [[nodiscard]] std::string name() const override { return "stack"; }
};

}  // namespace infeed
