// TorchGenerator against the torch that is installed: values, and the generator's position after each call.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cstdint>
#include <string>
#include <vector>

#include "infeed/base/rng.h"

namespace {

using infeed::TorchGenerator;

/// Two generators with one seed; a test draws the same from both and compares.
class TorchGeneratorTest : public ::testing::TestWithParam<std::uint64_t> {
 protected:
  TorchGeneratorTest() : theirs(at::make_generator<at::CPUGeneratorImpl>(GetParam())), ours(GetParam()) {
    at::set_num_threads(1);
  }

  static std::vector<std::int64_t> values(const at::Tensor& tensor) {
    const at::Tensor flat = tensor.contiguous();
    return {flat.data_ptr<std::int64_t>(), flat.data_ptr<std::int64_t>() + flat.numel()};
  }

  void expect_same_position() {
    const at::Tensor next = at::empty({3}, at::kLong).random_(theirs);
    for (const std::int64_t value : values(next)) ASSERT_EQ(value, ours.random_int64());
  }

  void expect_same_multinomial(const at::Tensor& weights, std::int64_t n, bool replacement) {
    SCOPED_TRACE("weights " + std::to_string(weights.numel()) + ", n " + std::to_string(n));
    const std::span<const double> view(weights.data_ptr<double>(), static_cast<std::size_t>(weights.numel()));
    EXPECT_EQ(values(at::multinomial(weights, n, replacement, theirs)), ours.multinomial(view, n, replacement));
    expect_same_position();
  }

  at::Tensor random_weights(std::int64_t n) {
    auto generator = at::make_generator<at::CPUGeneratorImpl>(99);
    return at::rand({n}, generator, at::kDouble);
  }

  at::Generator theirs;
  TorchGenerator ours;
};

INSTANTIATE_TEST_SUITE_P(Seeds, TorchGeneratorTest,
                         ::testing::Values(0U, 1U, 42U, 67280421310721U, 0xFFFFFFFFU, 0xFFFFFFFFFFFFFFFFU));

TEST_P(TorchGeneratorTest, DrawsTheSameBits) {
  auto* impl = at::check_generator<at::CPUGeneratorImpl>(theirs);
  for (int i = 0; i < 2000; ++i) ASSERT_EQ(impl->random(), ours.random());
  for (int i = 0; i < 2000; ++i) ASSERT_EQ(impl->random64(), ours.random64());
}

TEST_P(TorchGeneratorTest, DrawsTheSameUniforms) {
  const at::Tensor doubles = at::rand({1000}, theirs, at::kDouble);
  for (std::int64_t i = 0; i < 1000; ++i) ASSERT_EQ(doubles.data_ptr<double>()[i], ours.uniform_double());
  const at::Tensor floats = at::rand({1000}, theirs, at::kFloat);
  for (std::int64_t i = 0; i < 1000; ++i) ASSERT_EQ(floats.data_ptr<float>()[i], ours.uniform_float());
}

TEST_P(TorchGeneratorTest, PermutesTheSame) {
  for (const std::int64_t n : {0, 1, 2, 3, 10, 623, 624, 625, 4095, 4096, 4097, 4098, 100000, 1000003}) {
    EXPECT_EQ(values(at::randperm(n, theirs, at::kLong)), ours.randperm(n)) << "n " << n;
    expect_same_position();
  }
}

TEST_P(TorchGeneratorTest, DrawsTheSameBaseSeed) {
  for (int i = 0; i < 100; ++i)
    ASSERT_EQ(at::empty({}, at::kLong).random_(theirs).item<std::int64_t>(), ours.random_int64());
}

TEST_P(TorchGeneratorTest, DrawsTheSameIntegersInAnyRange) {
  constexpr std::int64_t kMin = std::numeric_limits<std::int64_t>::min();
  constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
  const std::pair<std::int64_t, std::int64_t> ranges[] = {{0, 1},
                                                          {0, 10},
                                                          {-5, 7},
                                                          {0, 1L << 27},
                                                          {0, (1L << 28) - 1},
                                                          {0, 1L << 28},
                                                          {3, 1L << 31},
                                                          {0, (1L << 32) - 1},
                                                          {0, 1L << 32},
                                                          {0, (1L << 32) + 1},
                                                          {0, kMax},
                                                          {kMin, kMax}};
  for (const auto& [low, high] : ranges) {
    EXPECT_EQ(values(at::randint(low, high, {1000}, theirs, at::kLong)), ours.randint(low, high, 1000)) << high;
    expect_same_position();
  }
}

TEST_P(TorchGeneratorTest, SamplesTheSameWithReplacement) {
  for (const std::int64_t size : {1, 2, 7, 1000, 100003}) expect_same_multinomial(random_weights(size), 2000, true);
}

TEST_P(TorchGeneratorTest, SamplesTheSameWithoutReplacement) {
  for (const std::int64_t size : {2, 7, 16, 1000, 100003}) {
    for (const std::int64_t n : {size / 100, size / 64, size / 3, size - 1, size})
      if (n > 0) expect_same_multinomial(random_weights(size), n, false);
  }
}

TEST_P(TorchGeneratorTest, SamplesTheSameOne) {
  for (const bool replacement : {false, true})
    for (const std::int64_t size : {1, 2, 7, 1000}) expect_same_multinomial(random_weights(size), 1, replacement);
}

TEST_P(TorchGeneratorTest, SamplesTheSameWithEqualAndZeroWeights) {
  at::Tensor weights = at::ones({1000}, at::kDouble);
  expect_same_multinomial(weights, 1000, false);
  weights.slice(0, 100, 900).zero_();
  expect_same_multinomial(weights, 150, false);
  expect_same_multinomial(weights, 500, false);  // more than are positive: zeros follow, in torch's order
  expect_same_multinomial(weights, 1000, false);
  expect_same_multinomial(weights, 2000, true);
}

}  // namespace
