#include "infeed/batch/batch.h"

#include <gtest/gtest.h>

#include "infeed/base/error.h"

namespace infeed {
namespace {

class BatchTest : public ::testing::Test {
 protected:
  std::int64_t values[3] = {1, 2, 3};
  std::shared_ptr<int> owner = std::make_shared<int>(0);
  Batch batch{{{"label", ArrayView(values, DType::kInt64, {3})}}, {10, 11, 12}, 4, 5, owner};
};

TEST_F(BatchTest, FindsItsArrays) {
  EXPECT_EQ(batch.size(), 3);
  EXPECT_EQ(batch.at("label").as<std::int64_t>()[2], 3);
  EXPECT_TRUE(batch.contains("label"));
  EXPECT_FALSE(batch.contains("image"));
}

TEST_F(BatchTest, NamesItsArraysWhereOneIsMissing) {
  try {
    static_cast<void>(batch.at("image"));
    FAIL() << "no error";
  } catch (const IndexError& error) {
    EXPECT_NE(std::string(error.what()).find("label"), std::string::npos) << error.what();
  }
}

TEST_F(BatchTest, KeepsItsMemoryUntilTheLastCopyIsGone) {
  Batch copy = batch;
  batch.release();
  EXPECT_TRUE(batch.arrays().empty());
  EXPECT_EQ(owner.use_count(), 2);
  copy.release();
  EXPECT_EQ(owner.use_count(), 1);
}

}  // namespace
}  // namespace infeed
