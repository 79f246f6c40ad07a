#include "infeed/dataset/synthetic.h"

#include <gtest/gtest.h>
#include <time.h>

#include <set>

#include "conformance/dataset_conformance.h"

namespace infeed {

using testing::DatasetCase;
using testing::DatasetConformance;
using testing::read_sample;

namespace {

const Schema kAllTypes{
    {"index", DType::kInt64, {}},  {"bool", DType::kBool, {5}},     {"u8", DType::kUInt8, {7}},
    {"f16", DType::kFloat16, {3}}, {"bf16", DType::kBFloat16, {3}}, {"f32", DType::kFloat32, {2, 3}},
    {"f64", DType::kFloat64, {2}}, {"tokens", DType::kInt32, {-1}}, {"boxes", DType::kFloat32, {-1, 4}}};

TEST(SyntheticDataset, KeepsValuesInTheirRange) {
  const SyntheticDataset dataset(100, kAllTypes);
  for (std::int64_t i = 0; i < 100; ++i) {
    const auto sample = read_sample(dataset, i);
    EXPECT_EQ(sample[0].values<std::int64_t>()[0], i);
    for (const std::uint8_t b : sample[1].values<std::uint8_t>()) EXPECT_LE(b, 1);
    for (const float f : sample[5].values<float>()) EXPECT_TRUE(f >= 0.0F && f < 1.0F);
    for (const double f : sample[6].values<double>()) EXPECT_TRUE(f >= 0.0 && f < 1.0);
  }
}

TEST(SyntheticDataset, DrawsLengthsFromTheirWholeRange) {
  const SyntheticDataset dataset(500, Schema{{"x", DType::kUInt8, {-1}}}, {.min_length = 2, .max_length = 5});
  std::set<std::int64_t> lengths;
  for (std::int64_t i = 0; i < 500; ++i) lengths.insert(read_sample(dataset, i)[0].shape[0]);
  EXPECT_EQ(lengths, (std::set<std::int64_t>{2, 3, 4, 5}));
}

TEST(SyntheticDataset, DiffersBySeedAndIndex) {
  const Schema schema{{"x", DType::kUInt64, {4}}};
  const SyntheticDataset a(10, schema, {.seed = 1}), b(10, schema, {.seed = 2});
  EXPECT_NE(read_sample(a, 0), read_sample(b, 0));
  EXPECT_NE(read_sample(a, 0), read_sample(a, 1));
  EXPECT_EQ(read_sample(a, 0, 1, 1), read_sample(a, 0, 2, 2));
}

TEST(SyntheticDataset, AugmentsByTheLoadersSeedAndEpoch) {
  const SyntheticDataset dataset(10, Schema{{"x", DType::kUInt64, {4}}}, {.augment = true});
  EXPECT_EQ(read_sample(dataset, 0, 1, 1), read_sample(dataset, 0, 1, 1));
  EXPECT_NE(read_sample(dataset, 0, 1, 1), read_sample(dataset, 0, 1, 2));
  EXPECT_NE(read_sample(dataset, 0, 1, 1), read_sample(dataset, 0, 2, 1));
}

TEST(SyntheticDataset, FailsWhereAsked) {
  const SyntheticDataset dataset(10, Schema{{"x", DType::kUInt8, {}}}, {.fail_every = 4});
  for (std::int64_t i = 0; i < 10; ++i) {
    if (i == 3 || i == 7)
      EXPECT_THROW(static_cast<void>(read_sample(dataset, i)), DataError);
    else
      EXPECT_NO_THROW(static_cast<void>(read_sample(dataset, i)));
  }
}

TEST(SyntheticDataset, CostsAtLeastTheTimeAsked) {
  const SyntheticDataset dataset(2, Schema{{"x", DType::kUInt8, {}}},
                                 {.cost_us = 2000, .slow_every = 2, .slow_factor = 3});
  const auto cpu_us = [] {
    timespec now{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return now.tv_sec * 1'000'000 + now.tv_nsec / 1000;
  };
  const auto start = cpu_us();
  static_cast<void>(read_sample(dataset, 0));
  const auto middle = cpu_us();
  static_cast<void>(read_sample(dataset, 1));
  EXPECT_GE(middle - start, 1999);
  EXPECT_GE(cpu_us() - middle, 5999);
}

TEST(SyntheticDataset, SleepsAtLeastTheTimeAskedAndCallsItReading) {
  const SyntheticDataset dataset(1, Schema{{"x", DType::kUInt8, {}}}, {.wait_us = 2000});
  StageTimes times;
  RowGather gather(dataset.schema());
  gather.start_batch();
  Row row = gather.start_row({.times = &times});
  dataset.read(row);
  EXPECT_GE(times.read_ns, 2'000'000U);
}

TEST(SyntheticDataset, RefusesImpossibleOptions) {
  const Schema schema{{"x", DType::kUInt8, {}}};
  EXPECT_THROW(SyntheticDataset(-1, schema), ConfigError);
  EXPECT_THROW(SyntheticDataset(1, schema, {.min_length = 5, .max_length = 4}), ConfigError);
  EXPECT_THROW(SyntheticDataset(1, schema, {.cost_us = -1}), ConfigError);
  EXPECT_THROW(SyntheticDataset(1, schema, {.wait_us = -1}), ConfigError);
  EXPECT_THROW(SyntheticDataset(1, schema, {.slow_factor = -1}), ConfigError);
}

}  // namespace

namespace testing {
INSTANTIATE_TEST_SUITE_P(
    Synthetic, DatasetConformance,
    ::testing::Values(DatasetCase{"all_types", [] { return std::make_unique<SyntheticDataset>(20, kAllTypes); }},
                      DatasetCase{"augmented",
                                  [] {
                                    return std::make_unique<SyntheticDataset>(20, kAllTypes,
                                                                              SyntheticOptions{.augment = true});
                                  }},
                      DatasetCase{"costly", [] {
                                    return std::make_unique<SyntheticDataset>(
                                        5, kAllTypes,
                                        SyntheticOptions{.cost_us = 20, .slow_every = 2, .slow_factor = 0.5});
                                  }}));
}

}  // namespace infeed
