#pragma once
/// Rows of different sizes, end to end.

#include "infeed/collate/collate.h"

namespace infeed {

/// A variable field becomes `<field>`, the rows' values joined along the field's first variable dimension, without a
/// batch dimension, and `<field>.offsets`, int64 [B + 1]: row i holds [offsets[i], offsets[i + 1]) of that dimension.
/// Further variable dimensions must agree within a batch; DataError else, naming the field, the row and both shapes.
/// Fixed fields are stacked.
///
///   field tokens [-1], rows of 3, 0, 2:  tokens [a a a c c]   tokens.offsets [0 3 3 5]
class INFEED_API RaggedCollate final : public Collate {
 public:
  void operator()(const Schema& schema, std::span<const std::vector<ArrayView>> rows,
                  CollateOutput& out) const override;
  [[nodiscard]] std::string name() const override { return "ragged"; }
};

}  // namespace infeed
