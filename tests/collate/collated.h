#pragma once
/// Rows of one int32 field (and its row number as int64 "label"), collated in an extent and read back as the consumer
/// does.

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "batch/reader.h"
#include "collate/run.h"
#include "support/aligned.h"

namespace infeed::testing {

class Collated {
 public:
  /// `field` is the shape in the schema; row i has shape shapes[i] and counts 100 * i, 100 * i + 1, ...
  Collated(const Collate& collate, const Shape& field, const std::vector<Shape>& shapes)
      : gather_(Schema{{"x", DType::kInt32, field}, {"label", DType::kInt64, {}}}) {
    gather_.start_batch();
    for (const Shape& shape : shapes) add(shape);
    used = collate_rows(collate, gather_, extent_.span());
    arrays_ = read_batch(extent_.span());
  }

  [[nodiscard]] const ArrayView& at(const std::string& name) const {
    return std::find_if(arrays_.begin(), arrays_.end(), [&](const NamedArray& a) { return a.name == name; })->array;
  }
  [[nodiscard]] std::vector<std::int32_t> x() const { return values<std::int32_t>("x"); }
  template <typename T>
  [[nodiscard]] std::vector<T> values(const std::string& name) const {
    return {at(name).as<T>(), at(name).as<T>() + at(name).numel()};
  }
  [[nodiscard]] std::vector<std::int64_t> ints(const std::string& name) const { return values<std::int64_t>(name); }

  std::size_t used = 0;

 private:
  void add(const Shape& shape) {
    const auto i = static_cast<std::int32_t>(gather_.num_rows());
    Row row = gather_.start_row({.index = i});
    auto* first = row.resize(0, shape).as<std::int32_t>();
    std::iota(first, first + shape.numel(), 100 * i);
    row.set<std::int64_t>(1, i);
    gather_.commit_row();
  }
  RowGather gather_;
  AlignedBytes extent_{64 << 10};
  std::vector<NamedArray> arrays_;
};

using Ints = std::vector<std::int64_t>;
using Values = std::vector<std::int32_t>;

}  // namespace infeed::testing
