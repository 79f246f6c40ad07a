#pragma once
/// What every Dataset must do. A test of a dataset instantiates this list:
///
///   INSTANTIATE_TEST_SUITE_P(Squares, DatasetConformance, ::testing::Values(DatasetCase{"squares", make_squares}));

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "infeed/base/error.h"
#include "infeed/dataset/registry.h"
#include "support/sample.h"

namespace infeed::testing {

struct DatasetCase {
  std::string name;
  /// A dataset of 4 samples or more, all readable, with whatever its memory needs.
  std::function<std::shared_ptr<const Dataset>()> make;
  bool has_spec = true;

  friend std::ostream& operator<<(std::ostream& out, const DatasetCase& c) { return out << c.name; }
};

class DatasetConformance : public ::testing::TestWithParam<DatasetCase> {
 protected:
  [[nodiscard]] std::int64_t last() const { return dataset->size() - 1; }
  std::shared_ptr<const Dataset> dataset = GetParam().make();
};

TEST_P(DatasetConformance, HasASizeAndASchemaThatStay) {
  const Schema schema = dataset->schema();
  const std::int64_t size = dataset->size();
  ASSERT_GE(size, 4);
  static_cast<void>(read_sample(*dataset, 0));
  EXPECT_EQ(dataset->schema(), schema);
  EXPECT_EQ(dataset->size(), size);
}

TEST_P(DatasetConformance, WritesWhatItsSchemaSays) {
  const Sample sample = read_sample(*dataset, last());
  ASSERT_EQ(sample.size(), dataset->schema().size());
  for (std::size_t f = 0; f < sample.size(); ++f) {
    const Field& field = dataset->schema()[f];
    EXPECT_EQ(sample[f].dtype, field.dtype);
    ASSERT_EQ(sample[f].shape.ndim(), field.shape.ndim());
    for (int dim = 0; dim < field.shape.ndim(); ++dim)
      EXPECT_TRUE(field.shape[dim] < 0 || field.shape[dim] == sample[f].shape[dim]);
  }
}

TEST_P(DatasetConformance, ReadsTheSameForTheSameSeedEpochAndIndex) {
  const Sample first = read_sample(*dataset, 1, 7, 3);
  for (std::int64_t i = 0; i <= last(); ++i) static_cast<void>(read_sample(*dataset, i));
  EXPECT_EQ(read_sample(*dataset, 1, 7, 3), first);
}

TEST_P(DatasetConformance, WritesEveryByteOfARow) {
  // read_sample() fills rows with 0xa5 before: a byte that is left shows where a second reader finds another.
  const auto other = GetParam().make();
  for (std::int64_t i = 0; i <= last(); ++i) EXPECT_EQ(read_sample(*dataset, i), read_sample(*other, i));
}

TEST_P(DatasetConformance, ReadsFromFourThreadsAtOnce) {
  std::vector<Sample> expected;
  for (std::int64_t i = 0; i <= last(); ++i) expected.push_back(read_sample(*dataset, i));
  std::vector<int> wrong(4, 0);
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < wrong.size(); ++t)
    threads.emplace_back([&, t] {
      for (std::int64_t i = last(); i >= 0; --i) {
        dataset->prefetch(i);
        if (read_sample(*dataset, i) != expected[static_cast<std::size_t>(i)]) ++wrong[t];
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, std::vector<int>(4, 0));
}

TEST_P(DatasetConformance, RefusesIndicesOutside) {
  EXPECT_THROW(static_cast<void>(read_sample(*dataset, -1)), IndexError);
  EXPECT_THROW(static_cast<void>(read_sample(*dataset, last() + 1)), IndexError);
}

TEST_P(DatasetConformance, TakesHintsAndQuestionsOutside) {
  for (const std::int64_t index : {std::int64_t{-1}, last() + 1, std::int64_t{1} << 62}) {
    dataset->prefetch(index);
    EXPECT_NO_THROW(static_cast<void>(dataset->describe(index)));
  }
}

TEST_P(DatasetConformance, IsMadeAgainFromItsSpec) {
  const auto spec = dataset->spec();
  ASSERT_EQ(spec.has_value(), GetParam().has_spec);
  if (!spec) return;
  const auto again = Registry::builtin().make({spec->name, State::from_json(spec->params.to_json()), spec->plugin});
  EXPECT_EQ(again->schema(), dataset->schema());
  ASSERT_EQ(again->size(), dataset->size());
  for (std::int64_t i = 0; i <= last(); ++i) {
    EXPECT_EQ(read_sample(*again, i), read_sample(*dataset, i));
    EXPECT_EQ(again->describe(i), dataset->describe(i));
  }
}

TEST_P(DatasetConformance, IsMadeAgainFromTheSpecOfACopy) {
  const auto spec = dataset->spec();
  if (!spec) return;
  const auto again = Registry::builtin().make(*spec);
  const auto third = Registry::builtin().make(again->spec().value());
  EXPECT_EQ(read_sample(*third, 2), read_sample(*again, 2));
}

}  // namespace infeed::testing
