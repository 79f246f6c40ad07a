#include "infeed/collate/collate.h"

#include <gtest/gtest.h>

#include "infeed/base/error.h"
#include "infeed/collate/pad.h"

namespace infeed {
namespace {

TEST(MakeCollate, MakesTheBuiltInOnesByName) {
  EXPECT_EQ(make_collate("stack", {})->name(), "stack");
  EXPECT_EQ(make_collate("ragged", {})->name(), "ragged");
}

TEST(MakeCollate, KeepsTheOptionsOfPad) {
  const PadCollate pad({.fill = {{"x", -100.0}}, .pad_to_multiple = 8, .max_size = {{"x", 64}}});
  const State crossed = State::from_json(pad.params().to_json());
  EXPECT_EQ(make_collate("pad", crossed)->params(), pad.params());
}

TEST(MakeCollate, RefusesUnknownNamesAndForeignParams) {
  EXPECT_THROW(static_cast<void>(make_collate("mine", {})), ConfigError);
  EXPECT_THROW(static_cast<void>(make_collate("pad", {})), StateError);
}

}  // namespace
}  // namespace infeed
