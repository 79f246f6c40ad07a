#include "base/check.h"

#include <gtest/gtest.h>

#include <string>

namespace infeed {
namespace {

TEST(Check, PassesInSilence) { EXPECT_NO_THROW(INFEED_CHECK(1 + 1 == 2, "sums")); }

TEST(Check, SaysWhatWhereAndWithWhichValues) {
  try {
    INFEED_CHECK(1 > 2, "ring of {} slots holds {}", 4, 5);
    FAIL();
  } catch (const Error& error) {
    const std::string text = error.what();
    for (const char* part : {"ring of 4 slots holds 5", "1 > 2", "check_test.cpp:"})
      EXPECT_NE(text.find(part), std::string::npos) << text;
  }
}

TEST(Check, ReadsTheValuesOnlyOnFailure) {
  int reads = 0;
  const auto read = [&] { return ++reads; };
  INFEED_CHECK(true, "{}", read());
  EXPECT_EQ(reads, 0);
}

}  // namespace
}  // namespace infeed
