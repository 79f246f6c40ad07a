#pragma once
/// Elementwise kernels over strided operands of any dtype, and conversions. Included behind host.h or device.cuh.

#include <cstdint>

#include "device/kernels/elementwise.h"
#include "device/kernels/kernels.h"
#include "infeed/base/dtype.h"

namespace infeed::device {

/// Byte offsets of element i of a loop.
template <int N>
struct Offsets {
  std::int64_t of[N];
};
template <int N>
INFEED_ANYWHERE inline Offsets<N> offsets_of(const infeed_loop& loop, std::int64_t i) {
  Offsets<N> offsets{};
  for (int dim = 0; dim < loop.ndim; ++dim) {
    const bool is_last = dim + 1 == loop.ndim;
    const std::int64_t at = is_last ? i : i % loop.size[dim];
    if (!is_last) i /= loop.size[dim];
    for (int k = 0; k < N; ++k) offsets.of[k] += at * loop.operand[k].stride[dim];
  }
  return offsets;
}

template <class C, class T>
INFEED_ANYWHERE inline C load_as(const infeed_operand& from, std::int64_t offset) {
  return static_cast<C>(*reinterpret_cast<const T*>(static_cast<const char*>(from.data) + offset));
}
template <class C>
INFEED_ANYWHERE inline C load(const infeed_operand& from, std::int64_t offset) {
  if (from.data == nullptr) return static_cast<C>(from.number);
  switch (static_cast<DType>(from.dtype)) {
    case DType::kFloat32: return load_as<C, float>(from, offset);
    case DType::kFloat64: return load_as<C, double>(from, offset);
    case DType::kInt64: return load_as<C, std::int64_t>(from, offset);
    case DType::kInt32: return load_as<C, std::int32_t>(from, offset);
    case DType::kInt16: return load_as<C, std::int16_t>(from, offset);
    case DType::kInt8: return load_as<C, std::int8_t>(from, offset);
    default: return load_as<C, std::uint8_t>(from, offset);  // bool, uint8
  }
}

template <class T, class C>
INFEED_ANYWHERE inline void store_as(const infeed_operand& to, std::int64_t offset, C value) {
  *reinterpret_cast<T*>(static_cast<char*>(to.data) + offset) = static_cast<T>(value);
}
template <class C>
INFEED_ANYWHERE inline void store(const infeed_operand& to, std::int64_t offset, C value) {
  switch (static_cast<DType>(to.dtype)) {
    case DType::kFloat32: return store_as<float>(to, offset, value);
    case DType::kFloat64: return store_as<double>(to, offset, value);
    case DType::kInt64: return store_as<std::int64_t>(to, offset, value);
    case DType::kInt32: return store_as<std::int32_t>(to, offset, value);
    case DType::kInt16: return store_as<std::int16_t>(to, offset, static_cast<std::int64_t>(value));
    case DType::kInt8: return store_as<std::int8_t>(to, offset, static_cast<std::int64_t>(value));
    case DType::kBool: return store_as<std::uint8_t>(to, offset, value != 0);
    default: return store_as<std::uint8_t>(to, offset, static_cast<std::int64_t>(value));
  }
}

template <class C, class Op>
struct MapOne {
  infeed_loop loop;
  Op op;
  INFEED_ANYWHERE void operator()(std::int64_t i) const {
    const auto at = offsets_of<2>(loop, i);
    const C x = load<C>(loop.operand[1], at.of[1]);
    store(loop.operand[0], at.of[0], value_of(op, x, static_cast<C>(loop.a), static_cast<C>(loop.b)));
  }
};
template <class C, class Op>
struct MapTwo {
  infeed_loop loop;
  Op op;
  INFEED_ANYWHERE void operator()(std::int64_t i) const {
    const auto at = offsets_of<3>(loop, i);
    const C x = load<C>(loop.operand[1], at.of[1]), y = load<C>(loop.operand[2], at.of[2]);
    store(loop.operand[0], at.of[0], value_of(op, x, y, static_cast<C>(loop.a)));
  }
};
template <class C, class Op>
struct MapThree {
  infeed_loop loop;
  Op op;
  INFEED_ANYWHERE void operator()(std::int64_t i) const {
    const auto at = offsets_of<4>(loop, i);
    const C x = load<C>(loop.operand[1], at.of[1]), y = load<C>(loop.operand[2], at.of[2]),
            z = load<C>(loop.operand[3], at.of[3]);
    store(loop.operand[0], at.of[0], value_of(op, x, y, z, static_cast<C>(loop.a)));
  }
};

template <template <class, class> class Map, class Op, class Where>
void map(const Where& where, infeed_operation op, const infeed_loop& loop) {
  if (loop.wide != 0)
    each(where, loop.numel, Map<double, Op>{loop, static_cast<Op>(op)});
  else
    each(where, loop.numel, Map<float, Op>{loop, static_cast<Op>(op)});
}
template <class Where>
void unary(const Where& where, infeed_operation op, infeed_loop loop) {
  map<MapOne, UnaryOp>(where, op, loop);
}
template <class Where>
void binary(const Where& where, infeed_operation op, infeed_loop loop) {
  map<MapTwo, BinaryOp>(where, op, loop);
}
template <class Where>
void ternary(const Where& where, infeed_operation op, infeed_loop loop) {
  map<MapThree, TernaryOp>(where, op, loop);
}

/// One dtype: bits as they are.
template <class Bits>
struct Move {
  infeed_loop loop;
  INFEED_ANYWHERE void operator()(std::int64_t i) const {
    const auto at = offsets_of<2>(loop, i);
    store_as<Bits>(loop.operand[0], at.of[0], load_as<Bits, Bits>(loop.operand[1], at.of[1]));
  }
};
/// By way of double, or of int64 between integers.
struct Convert {
  infeed_loop loop;
  bool is_real;
  INFEED_ANYWHERE void operator()(std::int64_t i) const {
    const auto at = offsets_of<2>(loop, i);
    const infeed_operand &to = loop.operand[0], &from = loop.operand[1];
    if (is_real)
      store(to, at.of[0], load<double>(from, at.of[1]));
    else
      store(to, at.of[0], load<std::int64_t>(from, at.of[1]));
  }
};
template <class Where>
void copy(const Where& where, infeed_loop loop) {
  const infeed_operand &to = loop.operand[0], &from = loop.operand[1];
  const bool is_real = from.data == nullptr || is_floating_point(static_cast<DType>(from.dtype));
  if (from.data == nullptr || to.dtype != from.dtype) return each(where, loop.numel, Convert{loop, is_real});
  switch (itemsize(static_cast<DType>(to.dtype))) {
    case 1: return each(where, loop.numel, Move<std::uint8_t>{loop});
    case 2: return each(where, loop.numel, Move<std::uint16_t>{loop});
    case 4: return each(where, loop.numel, Move<std::uint32_t>{loop});
    default: return each(where, loop.numel, Move<std::uint64_t>{loop});
  }
}

}  // namespace infeed::device
