#include "infeed/collate/pad.h"

#include <gtest/gtest.h>

#include "collate/collated.h"
#include "infeed/base/error.h"

namespace infeed {
namespace {

using testing::Collated;
using testing::Ints;
using testing::Values;

TEST(PadCollate, PadsToTheLongestRow) {
  const Collated batch(PadCollate({.fill = {{"x", -1}}}), {-1}, {{2}, {0}, {3}});
  EXPECT_EQ(batch.at("x").shape, (Shape{3, 3}));
  EXPECT_EQ(batch.x(), (Values{0, 1, -1, -1, -1, -1, 200, 201, 202}));
  EXPECT_EQ(batch.ints("x.lengths"), (Ints{2, 0, 3}));
  EXPECT_EQ(batch.ints("label"), (Ints{0, 1, 2}));
}

TEST(PadCollate, PadsTwoDimensions) {
  const Collated batch(PadCollate(), {-1, -1}, {{1, 3}, {2, 1}});
  EXPECT_EQ(batch.at("x").shape, (Shape{2, 2, 3}));
  EXPECT_EQ(batch.x(), (Values{0, 1, 2, 0, 0, 0, 100, 0, 0, 101, 0, 0}));
  EXPECT_EQ(batch.at("x.lengths").shape, (Shape{2, 2}));
  EXPECT_EQ(batch.ints("x.lengths"), (Ints{1, 3, 2, 1}));
}

TEST(PadCollate, PadsAMiddleDimension) {
  const Collated batch(PadCollate({.fill = {{"x", 9}}}), {2, -1, 2}, {{2, 1, 2}, {2, 2, 2}});
  EXPECT_EQ(batch.at("x").shape, (Shape{2, 2, 2, 2}));
  EXPECT_EQ(batch.x(), (Values{0, 1, 9, 9, 2, 3, 9, 9, 100, 101, 102, 103, 104, 105, 106, 107}));
}

TEST(PadCollate, RoundsUpToAMultipleWithinTheMaximum) {
  EXPECT_EQ(Collated(PadCollate({.pad_to_multiple = 8}), {-1}, {{3}, {9}}).at("x").shape, (Shape{2, 16}));
  EXPECT_EQ(Collated(PadCollate({.pad_to_multiple = 8}), {-1}, {{8}}).at("x").shape, (Shape{1, 8}));
  EXPECT_EQ(Collated(PadCollate({.pad_to_multiple = 8, .max_size = {{"x", 12}}}), {-1}, {{9}}).at("x").shape,
            (Shape{1, 12}));
}

TEST(PadCollate, RefusesRowsLongerThanTheMaximum) {
  const PadCollate pad({.max_size = {{"x", 4}}});
  EXPECT_NO_THROW(Collated(pad, {-1}, {{4}}));
  EXPECT_THROW(Collated(pad, {-1}, {{4}, {5}}), DataError);
}

TEST(PadCollate, PadsRowsWithoutElements) {
  const Collated batch(PadCollate({.fill = {{"x", 7}}}), {-1, -1}, {{5, 0}, {0, 2}});
  EXPECT_EQ(batch.at("x").shape, (Shape{2, 5, 2}));
  EXPECT_EQ(batch.x(), Values(20, 7));
  EXPECT_EQ(Collated(PadCollate(), {-1}, {{0}, {0}}).at("x").shape, (Shape{2, 0}));
}

TEST(PadCollate, MakesAnEmptyBatch) {
  const Collated batch(PadCollate({.pad_to_multiple = 8}), {3, -1}, {});
  EXPECT_EQ(batch.at("x").shape, (Shape{0, 3, 0}));
  EXPECT_EQ(batch.at("x.lengths").shape, (Shape{0}));
}

TEST(PadCollate, RefusesFillsThatTheDTypeCannotHold) {
  EXPECT_THROW(Collated(PadCollate({.fill = {{"x", 0.5}}}), {-1}, {{1}}), ConfigError);
  EXPECT_THROW(Collated(PadCollate({.fill = {{"x", 3e9}}}), {-1}, {{1}}), ConfigError);
  EXPECT_NO_THROW(Collated(PadCollate({.fill = {{"x", -2147483648.0}}}), {-1}, {{1}}));
}

TEST(PadCollate, RefusesOptionsBelowOne) {
  EXPECT_THROW(PadCollate({.pad_to_multiple = 0}), ConfigError);
  EXPECT_THROW(PadCollate({.max_size = {{"x", 0}}}), ConfigError);
}

/// Pads one row of one element to two; returns the bits of the second.
std::uint64_t fill_bits_of(DType dtype, double value) {
  RowGather gather(Schema{{"x", dtype, {-1}}});
  gather.start_batch();
  Row row = gather.start_row({});
  std::fill_n(row.resize(0, {1}).data, itemsize(dtype), std::byte{});
  gather.commit_row();
  testing::AlignedBytes extent(64 << 10);
  collate_rows(PadCollate({.fill = {{"x", value}}, .pad_to_multiple = 2}), gather, extent.span());
  std::uint64_t bits = 0;
  std::copy_n(read_batch(extent.span())[0].array.data + itemsize(dtype), itemsize(dtype),
              reinterpret_cast<std::byte*>(&bits));
  return bits;
}

TEST(PadCollate, FillsInEveryDType) {
  EXPECT_EQ(fill_bits_of(DType::kBool, 1), 1U);
  EXPECT_EQ(fill_bits_of(DType::kUInt8, 255), 0xffU);
  EXPECT_EQ(fill_bits_of(DType::kInt16, -2), 0xfffeU);
  EXPECT_EQ(fill_bits_of(DType::kUInt64, 5), 5U);
  EXPECT_EQ(fill_bits_of(DType::kInt64, -100), ~std::uint64_t{99});
  EXPECT_EQ(fill_bits_of(DType::kFloat16, 1.0), 0x3c00U);
  EXPECT_EQ(fill_bits_of(DType::kBFloat16, 1.0), 0x3f80U);
  EXPECT_EQ(fill_bits_of(DType::kFloat32, 1.0), 0x3f800000U);
  EXPECT_EQ(fill_bits_of(DType::kFloat64, 1.0), 0x3ff0000000000000U);
}

}  // namespace
}  // namespace infeed
