#include "dataset/widen.h"

#include <gtest/gtest.h>

#include <limits>

#include "base/half.h"

namespace infeed {
namespace {

template <typename From, typename To>
std::vector<To> widened(DType from, DType to, const std::vector<From>& values) {
  std::vector<To> result(values.size());
  const WidenFn widen = widen_function(from, to);
  EXPECT_NE(widen, nullptr) << to_string(from) << " to " << to_string(to);
  if (widen != nullptr)
    widen(reinterpret_cast<std::byte*>(result.data()), reinterpret_cast<const std::byte*>(values.data()),
          values.size());
  return result;
}

TEST(Widen, KeepsIntegers) {
  EXPECT_EQ((widened<std::uint16_t, std::int64_t>(DType::kUInt16, DType::kInt64, {0, 1, 65535})),
            (std::vector<std::int64_t>{0, 1, 65535}));
  EXPECT_EQ((widened<std::int8_t, std::int32_t>(DType::kInt8, DType::kInt32, {-128, 127})),
            (std::vector<std::int32_t>{-128, 127}));
}

TEST(Widen, KeepsIntegersInFloats) {
  EXPECT_EQ((widened<std::uint8_t, float>(DType::kUInt8, DType::kFloat32, {0, 255})), (std::vector<float>{0, 255}));
  EXPECT_EQ((widened<std::int32_t, double>(DType::kInt32, DType::kFloat64, {-2147483647 - 1, 2147483647})),
            (std::vector<double>{-2147483648.0, 2147483647.0}));
}

TEST(Widen, KeepsEveryByteInEveryFloat) {
  std::vector<std::uint8_t> bytes(256);
  for (std::size_t i = 0; i < 256; ++i) bytes[i] = static_cast<std::uint8_t>(i);
  const auto half = widened<std::uint8_t, std::uint16_t>(DType::kUInt8, DType::kFloat16, bytes);
  const auto brain = widened<std::uint8_t, std::uint16_t>(DType::kUInt8, DType::kBFloat16, bytes);
  for (std::size_t i = 0; i < 256; ++i) {
    EXPECT_EQ(float16_to_float(half[i]), static_cast<float>(i));
    EXPECT_EQ(bfloat16_to_float(brain[i]), static_cast<float>(i));
  }
}

TEST(Widen, KeepsHalves) {
  EXPECT_EQ((widened<std::uint16_t, float>(DType::kFloat16, DType::kFloat32, {0x3c00, 0x0001, 0x7bff})),
            (std::vector<float>{1.0F, 0x1p-24F, 65504.0F}));
  EXPECT_EQ((widened<std::uint16_t, double>(DType::kBFloat16, DType::kFloat64, {0x3f80})), (std::vector<double>{1.0}));
}

TEST(Widen, TakesAnyByteButZeroAsTrue) {
  EXPECT_EQ((widened<std::uint8_t, std::int64_t>(DType::kBool, DType::kInt64, {0, 1, 7})),
            (std::vector<std::int64_t>{0, 1, 1}));
}

TEST(Widen, RefusesWhatLosesValues) {
  using enum DType;
  const std::pair<DType, DType> refused[] = {
      {kInt64, kInt32},     {kInt64, kFloat64}, {kInt32, kFloat32},    {kInt8, kUInt64},      {kUInt64, kInt64},
      {kUInt16, kFloat16},  {kInt16, kFloat16}, {kFloat16, kBFloat16}, {kBFloat16, kFloat16}, {kFloat32, kFloat16},
      {kFloat64, kFloat32}, {kFloat32, kInt64}, {kUInt8, kBool},       {kUInt8, kInt8}};
  for (const auto& [from, to] : refused)
    EXPECT_EQ(widen_function(from, to), nullptr) << to_string(from) << " to " << to_string(to);
}

}  // namespace
}  // namespace infeed
