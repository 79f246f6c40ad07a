#include "dataset/copy_row.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace infeed {
namespace {

std::vector<std::byte> random_bytes(std::size_t size) {
  std::mt19937 random(5);
  std::vector<std::byte> bytes(size);
  std::generate(bytes.begin(), bytes.end(), [&] { return static_cast<std::byte>(random()); });
  return bytes;
}

TEST(CopyBytes, CopiesAnySizeFromAndToAnyAlignment) {
  const auto from = random_bytes(kStreamBytes + 300);
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{100}, kStreamBytes, kStreamBytes + 77}) {
    for (const std::size_t shift : {0, 1, 15, 16, 63}) {
      std::vector<std::byte> to(size + shift + 1, std::byte{0xee});
      copy_bytes(to.data() + shift, from.data() + shift, size);
      EXPECT_TRUE(std::equal(from.begin() + static_cast<std::ptrdiff_t>(shift),
                             from.begin() + static_cast<std::ptrdiff_t>(shift + size),
                             to.begin() + static_cast<std::ptrdiff_t>(shift)));
      EXPECT_EQ(to.back(), std::byte{0xee});
    }
  }
}

/// `view` in C order, element by element.
std::vector<std::int16_t> expected(const ArrayView& view) {
  std::vector<std::int16_t> result;
  for (std::int64_t i = 0; i < view.shape[0]; ++i) {
    for (std::int64_t j = 0; j < view.shape[1]; ++j)
      result.push_back(reinterpret_cast<const std::int16_t*>(view.data)[i * view.strides[0] + j * view.strides[1]]);
  }
  return result;
}

TEST(CopyStrided, CopiesTransposedBackwardAndRepeatedViews) {
  std::int16_t values[12] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
  for (const Strides& strides : {Strides{4, 1}, Strides{1, 4}, Strides{-4, 1}, Strides{0, 1}, Strides{1, 0}}) {
    ArrayView view(values, DType::kInt16, {3, 3});
    if (strides[0] < 0) view.data = reinterpret_cast<std::byte*>(values + 8);
    view.strides = strides;
    std::vector<std::int16_t> to(9);
    copy_strided(reinterpret_cast<std::byte*>(to.data()), view);
    EXPECT_EQ(to, expected(view));
  }
}

TEST(CopyStrided, CopiesItemsOfEverySize) {
  for (const DType dtype : {DType::kUInt8, DType::kInt16, DType::kFloat32, DType::kFloat64}) {
    const std::size_t item = itemsize(dtype);
    auto from = random_bytes(10 * item);
    ArrayView view(from.data(), dtype, {5});
    view.strides = Strides{2};
    std::vector<std::byte> to(5 * item);
    copy_strided(to.data(), view);
    for (std::size_t i = 0; i < 5 * item; ++i) EXPECT_EQ(to[i], from[i / item * 2 * item + i % item]);
  }
}

TEST(CopyStrided, CopiesScalarsAndNothing) {
  std::int32_t from = 9, to = 0;
  copy_strided(reinterpret_cast<std::byte*>(&to), ArrayView(&from, DType::kInt32, {}));
  EXPECT_EQ(to, 9);
  copy_strided(nullptr, ArrayView(nullptr, DType::kInt32, {0, 3}));
}

}  // namespace
}  // namespace infeed
