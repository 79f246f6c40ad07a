#include "infeed/collate/pad.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "base/half.h"
#include "collate/stack_rows.h"
#include "infeed/base/error.h"

namespace infeed {
namespace {

/// An element's bytes, to be repeated.
struct Pattern {
  std::size_t itemsize = 1;
  std::uint64_t bits = 0;
};

template <typename T>
std::uint64_t bits_of(T value) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(value));
  return bits;
}

template <typename T>
std::uint64_t integer_bits(const Field& field, double value) {
  // 2^digits is exact as a double, the largest T need not be.
  const double limit = std::ldexp(1.0, std::numeric_limits<T>::digits);
  const double lowest = std::is_signed_v<T> ? -limit : 0.0;
  if (!(value >= lowest && value < limit) || value != std::trunc(value))
    throw ConfigError(
        fmt::format("the fill {} of field '{}' is no value of {}.", value, field.name, to_string(field.dtype)));
  return bits_of(static_cast<T>(value));
}

std::uint64_t fill_bits(const Field& field, double value) {
  switch (field.dtype) {
    case DType::kBool: return integer_bits<bool>(field, value);
    case DType::kUInt8: return integer_bits<std::uint8_t>(field, value);
    case DType::kInt8: return integer_bits<std::int8_t>(field, value);
    case DType::kInt16: return integer_bits<std::int16_t>(field, value);
    case DType::kUInt16: return integer_bits<std::uint16_t>(field, value);
    case DType::kInt32: return integer_bits<std::int32_t>(field, value);
    case DType::kUInt32: return integer_bits<std::uint32_t>(field, value);
    case DType::kInt64: return integer_bits<std::int64_t>(field, value);
    case DType::kUInt64: return integer_bits<std::uint64_t>(field, value);
    case DType::kFloat16: return float_to_float16(static_cast<float>(value));
    case DType::kBFloat16: return float_to_bfloat16(static_cast<float>(value));
    case DType::kFloat32: return bits_of(static_cast<float>(value));
    case DType::kFloat64: return bits_of(value);
  }
  return 0;
}

std::byte* fill(std::byte* out, const Pattern& pattern, std::int64_t count) {
  const auto n = static_cast<std::size_t>(count);
  switch (pattern.itemsize) {
    case 1: std::memset(out, static_cast<int>(pattern.bits), n); break;
    case 2: std::fill_n(reinterpret_cast<std::uint16_t*>(out), n, static_cast<std::uint16_t>(pattern.bits)); break;
    case 4: std::fill_n(reinterpret_cast<std::uint32_t*>(out), n, static_cast<std::uint32_t>(pattern.bits)); break;
    default: std::fill_n(reinterpret_cast<std::uint64_t*>(out), n, pattern.bits); break;
  }
  return out + n * pattern.itemsize;
}

std::int64_t numel_from(const Shape& shape, int dim) {
  return Shape(shape.span().subspan(static_cast<std::size_t>(dim))).numel();
}

/// Copies `in`, the part of `row` from dimension `dim` on, to `out`, which has the sizes of `padded`; writes every
/// element once. Returns the end of what was written.
std::byte* copy_padded(std::byte* out, const std::byte*& in, const Shape& row, const Shape& padded, int dim,
                       const Pattern& pattern) {
  if (dim == row.ndim()) {  // a scalar
    std::memcpy(out, in, pattern.itemsize);
    return out + pattern.itemsize;
  }
  const std::int64_t inner = numel_from(padded, dim + 1);
  if (std::equal(row.begin() + dim + 1, row.end(), padded.begin() + dim + 1)) {
    const std::size_t nbytes = static_cast<std::size_t>(row[dim] * inner) * pattern.itemsize;
    std::memcpy(out, in, nbytes);
    in += nbytes;
    out += nbytes;
  } else {
    for (std::int64_t i = 0; i < row[dim]; ++i) out = copy_padded(out, in, row, padded, dim + 1, pattern);
  }
  return fill(out, pattern, (padded[dim] - row[dim]) * inner);
}

void add_lengths(const Field& field, const std::vector<ArrayView>& rows, CollateOutput& out) {
  std::vector<int> dims;
  for (int dim = 0; dim < field.shape.ndim(); ++dim) {
    if (field.shape[dim] < 0) dims.push_back(dim);
  }
  Shape shape{static_cast<std::int64_t>(rows.size())};
  if (dims.size() > 1) shape.push_back(static_cast<std::int64_t>(dims.size()));
  auto* lengths = out.add(field.name + ".lengths", DType::kInt64, shape).as<std::int64_t>();
  for (const ArrayView& row : rows) {
    for (const int dim : dims) *lengths++ = row.shape[dim];
  }
}

}  // namespace

PadCollate::PadCollate(PadOptions options) : options_(std::move(options)) {
  if (options_.pad_to_multiple < 1)
    throw ConfigError(fmt::format("pad_to_multiple is {}, it must be 1 or more.", options_.pad_to_multiple));
  for (const auto& [field, size] : options_.max_size) {
    if (size < 1) throw ConfigError(fmt::format("max_size of field '{}' is {}, it must be 1 or more.", field, size));
  }
}

Shape PadCollate::padded_shape(const Field& field, const std::vector<ArrayView>& rows) const {
  const auto found = options_.max_size.find(field.name);
  const std::int64_t limit =
      found == options_.max_size.end() ? std::numeric_limits<std::int64_t>::max() : found->second;
  Shape padded = with_variable(field.shape, 0);
  for (int dim = 0; dim < padded.ndim(); ++dim) {
    if (field.shape[dim] >= 0) continue;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (rows[i].shape[dim] > limit)
        throw DataError(
            fmt::format("field '{}': row {} of the batch has shape {}, max_size is {}. Cut it in the dataset, "
                        "or raise max_size.",
                        field.name, i, rows[i].shape.str(), limit));
      padded[dim] = std::max(padded[dim], rows[i].shape[dim]);
    }
    const std::int64_t missing =
        (options_.pad_to_multiple - padded[dim] % options_.pad_to_multiple) % options_.pad_to_multiple;
    padded[dim] += std::min(missing, limit - padded[dim]);
  }
  return padded;
}

void PadCollate::pad_field(const Field& field, const std::vector<ArrayView>& rows, CollateOutput& out) const {
  const auto found = options_.fill.find(field.name);
  const Pattern pattern{itemsize(field.dtype), fill_bits(field, found == options_.fill.end() ? 0.0 : found->second)};
  const Shape padded = padded_shape(field, rows);
  std::byte* end = out.add(field.name, field.dtype, padded.with_front(static_cast<std::int64_t>(rows.size()))).data;
  for (const ArrayView& row : rows) {
    const std::byte* in = row.data;
    end = copy_padded(end, in, row.shape, padded, 0, pattern);
  }
  add_lengths(field, rows, out);
}

// A misspelt field would be padded with zeros, and nobody would know.
void PadCollate::check_names(const Schema& schema) const {
  const auto check = [&](const std::string& name, const char* option) {
    if (schema.find(name)) return;
    std::vector<std::string> known;
    for (const Field& field : schema.fields()) known.push_back(field.name);
    throw ConfigError(fmt::format("PadCollate's {} names the field '{}'. The dataset's fields: {}.", option, name,
                                  fmt::join(known, ", ")));
  };
  for (const auto& [name, value] : options_.fill) check(name, "fill");
  for (const auto& [name, value] : options_.max_size) check(name, "max_size");
}

void PadCollate::operator()(const Schema& schema, std::span<const std::vector<ArrayView>> rows,
                            CollateOutput& out) const {
  check_names(schema);
  for (std::size_t f = 0; f < schema.size(); ++f) {
    if (schema[f].variable())
      pad_field(schema[f], rows[f], out);
    else
      stack_rows(schema[f], rows[f], out);
  }
}

State PadCollate::params() const {
  State fill, max_size, params;
  for (const auto& [field, value] : options_.fill) fill.set(field, value);
  for (const auto& [field, size] : options_.max_size) max_size.set(field, size);
  params.set("fill", fill);
  params.set("pad_to_multiple", options_.pad_to_multiple);
  params.set("max_size", max_size);
  return params;
}

PadOptions PadCollate::options_from(const State& params) {
  PadOptions options;
  const State fill = params.get_state("fill");
  for (const std::string& field : fill.keys()) options.fill[field] = fill.get_double(field);
  options.pad_to_multiple = params.get_int("pad_to_multiple");
  const State max_size = params.get_state("max_size");
  for (const std::string& field : max_size.keys()) options.max_size[field] = max_size.get_int(field);
  return options;
}

}  // namespace infeed
