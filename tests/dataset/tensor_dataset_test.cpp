#include "infeed/dataset/tensor_dataset.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <numeric>

#include "conformance/dataset_conformance.h"
#include "dataset/sealed_file.h"

namespace infeed {

using testing::DatasetCase;
using testing::DatasetConformance;
using testing::read_sample;

namespace {

/// 20 rows of uint16 tokens [6], labels, and flags without elements.
struct Arrays {
  Arrays() {
    std::iota(tokens.begin(), tokens.end(), std::uint16_t{0});
    std::iota(labels.begin(), labels.end(), std::int64_t{-5});
  }
  [[nodiscard]] std::vector<NamedArray> named() {
    return {{"tokens", ArrayView(tokens.data(), DType::kUInt16, {20, 6})},
            {"labels", ArrayView(labels.data(), DType::kInt64, {20})},
            {"none", ArrayView(labels.data(), DType::kBool, {20, 0})}};
  }
  /// tokens as [6, 20] transposed: rows are strided.
  [[nodiscard]] ArrayView transposed() {
    ArrayView view(tokens.data(), DType::kUInt16, {20, 6});
    view.strides = Strides{1, 20};
    return view;
  }
  std::vector<std::uint16_t> tokens = std::vector<std::uint16_t>(120);
  std::vector<std::int64_t> labels = std::vector<std::int64_t>(20);
};

std::unique_ptr<TensorDataset> make_dataset(TensorDatasetOptions options = {}, bool strided = false) {
  auto arrays = std::make_shared<Arrays>();
  auto named = arrays->named();
  if (strided) named[0].array = arrays->transposed();
  return std::make_unique<TensorDataset>(std::move(named), std::move(options), arrays);
}

TEST(TensorDataset, DeliversRows) {
  const auto sample = read_sample(*make_dataset(), 3);
  EXPECT_EQ(sample[0].values<std::uint16_t>(), (std::vector<std::uint16_t>{18, 19, 20, 21, 22, 23}));
  EXPECT_EQ(sample[1].values<std::int64_t>(), (std::vector<std::int64_t>{-2}));
  EXPECT_EQ(sample[2].shape, (Shape{0}));
}

TEST(TensorDataset, DeliversRowsOfStridedArrays) {
  const auto sample = read_sample(*make_dataset({}, true), 3);
  EXPECT_EQ(sample[0].values<std::uint16_t>(), (std::vector<std::uint16_t>{3, 23, 43, 63, 83, 103}));
}

TEST(TensorDataset, WidensWhatItStoresSmall) {
  for (const bool strided : {false, true}) {
    const auto dataset = make_dataset({.widen = {{"tokens", DType::kInt64}}}, strided);
    EXPECT_EQ(dataset->schema()[0].dtype, DType::kInt64);
    EXPECT_EQ(read_sample(*dataset, 3)[0].values<std::int64_t>()[1], strided ? 23 : 19);
  }
}

TEST(TensorDataset, CopiesRowsOfMegabytes) {
  std::vector<std::int32_t> values(2 * 300'000);
  std::iota(values.begin(), values.end(), 0);
  const TensorDataset dataset({{"x", ArrayView(values.data(), DType::kInt32, {2, 300'000})}});
  EXPECT_EQ(read_sample(dataset, 1)[0].values<std::int32_t>(),
            std::vector<std::int32_t>(values.begin() + 300'000, values.end()));
}

TEST(TensorDataset, RefusesArraysThatDoNotFitTogether) {
  Arrays arrays;
  auto named = arrays.named();
  named[1].array = ArrayView(arrays.labels.data(), DType::kInt64, {19});
  EXPECT_THROW(TensorDataset{named}, ConfigError);
  named[1].array = ArrayView(arrays.labels.data(), DType::kInt64, {});
  EXPECT_THROW(TensorDataset{named}, ConfigError);
  named[1] = named[0];
  EXPECT_THROW(TensorDataset{named}, ConfigError);
  EXPECT_THROW(TensorDataset{std::vector<NamedArray>{}}, ConfigError);
}

TEST(TensorDataset, RefusesArraysOnADevice) {
  Arrays arrays;
  auto named = arrays.named();
  named[0].array.device.type = DeviceType::kCUDA;
  EXPECT_THROW(TensorDataset{named}, ConfigError);
}

TEST(TensorDataset, RefusesToWidenWhatLosesOrIsMissing) {
  EXPECT_THROW(make_dataset({.widen = {{"tokens", DType::kInt16}}}), ConfigError);
  EXPECT_THROW(make_dataset({.widen = {{"pixels", DType::kInt64}}}), ConfigError);
}

TEST(TensorDataset, CrossesInOneSealedFile) {
  const auto dataset = make_dataset();
  const auto fds = dataset->spec()->params.get_ints("fds");
  ASSERT_EQ(fds.size(), 1U);
  EXPECT_EQ(dataset->spec()->params.get_ints("fds"), fds);
  EXPECT_LT(pwrite(static_cast<int>(fds[0]), "x", 1, 0), 0);
}

TEST(TensorDataset, OutlivesTheDatasetItWasMadeFrom) {
  auto dataset = make_dataset();
  const auto expected = read_sample(*dataset, 3);
  const auto again = TensorDataset::from_params(dataset->spec()->params);
  dataset.reset();
  EXPECT_EQ(read_sample(*again, 3), expected);
}

TEST(TensorDataset, IsNotMadeWithoutItsDescriptor) {
  auto spec = make_dataset()->spec().value();  // the dataset, and with it the descriptor, is gone
  EXPECT_THROW(static_cast<void>(TensorDataset::from_params(spec.params)), ConfigError);
  spec.params.set("fds", std::vector<std::int64_t>{});
  EXPECT_THROW(static_cast<void>(TensorDataset::from_params(spec.params)), ConfigError);
}

TEST(TensorDataset, IsNotMadeFromAnotherFile) {
  const SealedFile small("small", 1);
  auto spec = make_dataset()->spec().value();
  spec.params.set("fds", std::vector<std::int64_t>{small.fd()});
  EXPECT_THROW(static_cast<void>(TensorDataset::from_params(spec.params)), ConfigError);
}

}  // namespace

namespace testing {
INSTANTIATE_TEST_SUITE_P(Tensor, DatasetConformance,
                         ::testing::Values(DatasetCase{"plain", [] { return make_dataset(); }},
                                           DatasetCase{"strided", [] { return make_dataset({}, true); }},
                                           DatasetCase{"widened", [] {
                                                         return make_dataset({.widen = {{"tokens", DType::kInt64}}});
                                                       }}));
}

}  // namespace infeed
