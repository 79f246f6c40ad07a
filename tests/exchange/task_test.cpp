#include "exchange/task.h"

#include <gtest/gtest.h>

#include <string>

#include "infeed/base/error.h"

namespace infeed {
namespace {

std::vector<std::int64_t> packed(const std::string& text) {
  std::vector<std::int64_t> words{99, 99, 99, 99};
  pack_task(std::as_bytes(std::span(text)), words);
  return words;
}

TEST(TaskTest, IndicesComeBackAsTheyWere) {
  const std::vector<std::int64_t> indices{0, -1, INT64_MIN, INT64_MAX};
  std::vector<std::int64_t> words;
  pack_task(std::span(indices), words);
  const ExchangeTask task = unpack_task(words);
  EXPECT_FALSE(task.is_bytes);
  EXPECT_TRUE(std::equal(indices.begin(), indices.end(), task.indices.begin(), task.indices.end()));
}

TEST(TaskTest, BytesOfAnyLengthComeBackAsTheyWere) {
  for (std::size_t length = 0; length <= 17; ++length) {
    const std::string text(length, 'x');
    const auto words = packed(text);
    const ExchangeTask task = unpack_task(words);
    EXPECT_TRUE(task.is_bytes);
    EXPECT_EQ(std::string(reinterpret_cast<const char*>(task.bytes.data()), task.bytes.size()), text);
  }
}

TEST(TaskTest, TheLastWordIsFilledUpWithZeros) { EXPECT_EQ(packed("\x01").back(), 1); }

TEST(TaskTest, NoIndicesAreATask) {
  std::vector<std::int64_t> words;
  pack_task(std::span<const std::int64_t>{}, words);
  EXPECT_TRUE(unpack_task(words).indices.empty());
}

TEST(TaskTest, RefusesACountThatDoesNotFit) {
  EXPECT_THROW(static_cast<void>(unpack_task({})), Error);
  auto words = packed("four");
  words[0] += 5;
  EXPECT_THROW(static_cast<void>(unpack_task(words)), Error);
}

}  // namespace
}  // namespace infeed
