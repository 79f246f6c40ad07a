#pragma once
/// The loops of loops.h on the host: the same lanes and the same order of sums as the device's.

#include <array>
#include <cstdint>

#include "device/kernels/kernels.h"

namespace infeed::device {

inline constexpr int kLanes = 256;  ///< that share a row

/// body(i) for each i in [0, count).
template <class Body>
void each(const Host&, std::int64_t count, const Body& body) {
  for (std::int64_t i = 0; i < count; ++i) body(i);
}

/// All lanes of a row, one after the other.
struct HostLanes {
  /// Lane l takes values l, l + kLanes, ...; then halves are joined.
  template <class T, class Value, class Join>
  [[nodiscard]] T reduce(std::int64_t count, T neutral, const Value& value, const Join& join) const {
    std::array<T, kLanes> lanes;
    lanes.fill(neutral);
    for (std::int64_t i = 0; i < count; ++i) {
      T& lane = lanes[static_cast<std::size_t>(i % kLanes)];
      lane = join(lane, value(i));
    }
    for (std::size_t half = kLanes / 2; half > 0; half /= 2)
      for (std::size_t lane = 0; lane < half; ++lane) lanes[lane] = join(lanes[lane], lanes[lane + half]);
    return lanes[0];
  }
  template <class Body>
  void each(std::int64_t count, const Body& body) const {
    for (std::int64_t i = 0; i < count; ++i) body(i);
  }
  template <class Body>
  void once(const Body& body) const {
    body();
  }
};

/// body(row, lanes) for each row.
template <class Body>
void each_row(const Host&, std::int64_t rows, const Body& body) {
  for (std::int64_t row = 0; row < rows; ++row) body(row, HostLanes{});
}

/// c[row, column] = sum over k of a(row, k) b(k, column).
template <class A, class B>
void multiply(const Host&, const infeed_matmul& shape, float* c, const A& a, const B& b) {
  for (std::int64_t row = 0; row < shape.m; ++row) {
    for (std::int64_t column = 0; column < shape.n; ++column) {
      float sum = 0;
      for (std::int64_t k = 0; k < shape.k; ++k) sum += a(row, k) * b(k, column);
      c[row * shape.n + column] = sum;
    }
  }
}

}  // namespace infeed::device
