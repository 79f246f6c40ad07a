#pragma once
/// Rows of different sizes, padded to the longest of the batch.

#include <map>

#include "infeed/collate/collate.h"

namespace infeed {

struct PadOptions {
  /// Value of the padding by field name; ConfigError at the first batch if the field's dtype cannot hold it.
  /// Default: 0.
  std::map<std::string, double> fill = {};
  /// Padded sizes are rounded up to a multiple of this, which spares compilers and matrix units odd shapes. Default 1.
  std::int64_t pad_to_multiple = 1;
  /// Largest size of a row's variable dimensions by field name; a longer row is a DataError, and rounding up stops
  /// here. Default: any.
  std::map<std::string, std::int64_t> max_size = {};
};

/// A variable field becomes `<field>` [B, ...], each variable dimension as long as the batch's longest row, and
/// `<field>.lengths`, the rows' own sizes: int64 [B] where one dimension is variable, [B, V] where V are, in order.
/// Fixed fields are stacked. An empty batch has size 0 in every variable dimension.
class INFEED_API PadCollate final : public Collate {
 public:
  /// Throws ConfigError on a multiple or maximum below 1.
  explicit PadCollate(PadOptions options = {});

  void operator()(const Schema& schema, std::span<const std::vector<ArrayView>> rows,
                  CollateOutput& out) const override;
  [[nodiscard]] std::string name() const override { return "pad"; }
  [[nodiscard]] State params() const override;
  /// Inverse of params().
  [[nodiscard]] static PadOptions options_from(const State& params);

 private:
  void check_names(const Schema& schema) const;
  void pad_field(const Field& field, const std::vector<ArrayView>& rows, CollateOutput& out) const;
  [[nodiscard]] Shape padded_shape(const Field& field, const std::vector<ArrayView>& rows) const;

  PadOptions options_;
};

}  // namespace infeed
