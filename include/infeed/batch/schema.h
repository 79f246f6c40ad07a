#pragma once
/// Names, types and sizes of what a dataset yields.

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "infeed/base/dtype.h"
#include "infeed/base/export.h"
#include "infeed/base/shape.h"
#include "infeed/base/state.h"

namespace infeed {

/// One named array of a sample. A size of -1 marks a dimension that differs from sample to sample ("variable").
struct Field {
  std::string name;
  DType dtype = DType::kFloat32;
  Shape shape;  ///< of one sample, without the batch dimension

  [[nodiscard]] bool variable() const noexcept {
    for (const std::int64_t size : shape) {
      if (size < 0) return true;
    }
    return false;
  }
  friend bool operator==(const Field&, const Field&) = default;
};

/// The fields of a sample, in order. Names are unique and have 1 to 63 bytes; ConfigError else.
class INFEED_API Schema {
 public:
  Schema() = default;
  Schema(std::initializer_list<Field> fields) : Schema(std::vector<Field>(fields)) {}
  explicit Schema(std::vector<Field> fields);

  [[nodiscard]] std::size_t size() const noexcept { return fields_.size(); }
  /// Field `i`, below size(): not checked.
  [[nodiscard]] const Field& operator[](std::size_t i) const noexcept { return fields_[i]; }
  [[nodiscard]] const std::vector<Field>& fields() const noexcept { return fields_; }
  /// Position of `name`; nullopt if there is none.
  [[nodiscard]] std::optional<std::size_t> find(std::string_view name) const noexcept;
  /// True if no field is variable: then rows are written at their final place.
  [[nodiscard]] bool fixed() const noexcept;
  /// Bytes of one sample's fixed fields.
  [[nodiscard]] std::size_t row_bytes() const;
  /// To and from JSON-able state, for spawned workers and plugins. from_state() throws StateError or ConfigError.
  [[nodiscard]] State to_state() const;
  [[nodiscard]] static Schema from_state(const State& state);

  friend bool operator==(const Schema&, const Schema&) = default;

 private:
  std::vector<Field> fields_;
};

}  // namespace infeed
