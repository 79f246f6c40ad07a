#include "infeed/base/state.h"

#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "infeed/base/error.h"

namespace infeed {
namespace {

constexpr std::int64_t kMin = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
constexpr std::uint64_t kMaxUnsigned = std::numeric_limits<std::uint64_t>::max();

State again(const State& state) { return State::from_json(state.to_json()); }

/// The message of the StateError that `action` throws.
std::string error_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const StateError& error) {
    return error.what();
  }
  return "no StateError";
}

void expect_mentions(const std::string& message, const std::vector<std::string>& parts) {
  for (const std::string& part : parts) EXPECT_NE(message.find(part), std::string::npos) << message;
}

TEST(State, ReturnsWhatWasSet) {
  State state;
  state.set("flag", true);
  state.set("count", 7);
  state.set("ratio", 0.1);
  state.set("name", "shard \"3\"\n");
  state.set("list", std::vector<std::int64_t>{3, -1, kMin});
  const State read = again(state);
  EXPECT_TRUE(read.get_bool("flag"));
  EXPECT_EQ(read.get_int("count"), 7);
  EXPECT_EQ(read.get_double("ratio"), 0.1);
  EXPECT_EQ(read.get_string("name"), "shard \"3\"\n");
  EXPECT_EQ(read.get_ints("list"), (std::vector<std::int64_t>{3, -1, kMin}));
}

TEST(State, KeepsIntegersExact) {
  State state;
  state.set("min", kMin);
  state.set("max", kMax);
  state.set("unsigned", kMaxUnsigned);
  const State read = again(state);
  EXPECT_EQ(read.get_int("min"), kMin);
  EXPECT_EQ(read.get_int("max"), kMax);
  EXPECT_EQ(read.get_uint("unsigned"), kMaxUnsigned);
  EXPECT_EQ(read.get_uint("max"), static_cast<std::uint64_t>(kMax));
}

TEST(State, KeepsDoublesExact) {
  for (const double value : {0.0, 1.0, 1.0 / 3, 1e300, 5e-324, -2.5e-17}) {
    State state;
    state.set("x", value);
    EXPECT_EQ(again(state).get_double("x"), value);
  }
}

TEST(State, NestsObjectsAndLists) {
  State inner;
  inner.set("epoch", 3);
  State state;
  state.set("sampler", inner);
  state.set("workers", std::vector<State>{inner, State()});
  const State read = again(state);
  EXPECT_EQ(read.get_state("sampler"), inner);
  EXPECT_EQ(read.get_states("workers").at(0).get_int("epoch"), 3);
  EXPECT_EQ(read.get_states("workers").size(), 2U);
}

TEST(State, GivesEqualTextForEqualStates) {
  State a;
  a.set("x", 1);
  a.set("y", 2);
  State b;
  b.set("y", 2);
  b.set("x", 1);
  EXPECT_EQ(a, b);
  EXPECT_EQ(a.to_json(), "{\"x\":1,\"y\":2}");
  EXPECT_EQ(b.to_json(), a.to_json());
}

TEST(State, CopiesApart) {
  State a;
  a.set("x", 1);
  State b = a;
  b.set("x", 2);
  EXPECT_EQ(a.get_int("x"), 1);
  State& same = a;
  a = same;
  EXPECT_EQ(a.get_int("x"), 1);
}

TEST(State, IsEmptyAtFirstAndAfterAMove) {
  State state;
  EXPECT_EQ(state.to_json(), "{}");
  state.set("x", 1);
  const State moved = std::move(state);
  EXPECT_TRUE(moved.contains("x"));
  EXPECT_EQ(state, State());  // NOLINT(bugprone-use-after-move): promised to be usable
  state.set("y", 1);
  EXPECT_EQ(state.keys(), std::vector<std::string>{"y"});
}

TEST(State, NamesAMissingKeyAndThoseItHas) {
  State state;
  state.set("seed", 1);
  expect_mentions(error_of([&] { static_cast<void>(state.get_int("epoch")); }), {"\"epoch\"", "an integer", "seed"});
}

TEST(State, NamesKeyAndTypesOnAMismatch) {
  State state;
  state.set("epoch", "two");
  state.set("ratio", 1.5);
  state.set("negative", -1);
  state.set("large", kMaxUnsigned);
  expect_mentions(error_of([&] { static_cast<void>(state.get_int("epoch")); }),
                  {"\"epoch\"", "an integer", "a string", "two"});
  expect_mentions(error_of([&] { static_cast<void>(state.get_int("ratio")); }), {"a fractional number", "1.5"});
  expect_mentions(error_of([&] { static_cast<void>(state.get_uint("negative")); }), {"non-negative", "-1"});
  expect_mentions(error_of([&] { static_cast<void>(state.get_int("large")); }), {"below 2^63"});
  expect_mentions(error_of([&] { static_cast<void>(state.get_bool("ratio")); }), {"a boolean"});
  expect_mentions(error_of([&] { static_cast<void>(state.get_state("epoch")); }), {"an object"});
}

TEST(State, RefusesAListWithOneWrongItem) {
  const State state = State::from_json(R"({"list": [1, "two"], "states": [{}, 3]})");
  EXPECT_THROW(static_cast<void>(state.get_ints("list")), StateError);
  EXPECT_THROW(static_cast<void>(state.get_states("states")), StateError);
}

TEST(State, SaysWhereJsonIsDamaged) {
  expect_mentions(error_of([] { static_cast<void>(State::from_json(R"({"x": 1)")); }), {"at byte"});
  for (const char* text :
       {"", "nul", "[1]", "3", R"({"x": 1e999})", R"({"x": 01})", "{\"x\": \"\xFF\"}", R"({"x": NaN})"})
    EXPECT_THROW(static_cast<void>(State::from_json(text)), StateError) << text;
}

TEST(State, RefusesJsonThatNestsTooDeep) {
  for (const std::string& open : {std::string("["), std::string("{\"a\":")}) {
    std::string text = "{\"x\":";
    for (int i = 0; i < 1000000; ++i) text += open;
    EXPECT_THROW(static_cast<void>(State::from_json(text)), StateError);
  }
  EXPECT_NO_THROW(static_cast<void>(State::from_json(
      R"({"brackets in a text": "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[["})")));
}

TEST(State, RefusesToBeBuiltTooDeep) {
  State state;
  EXPECT_THROW(
      for (int i = 0; i < 100; ++i) {
        State outer;
        outer.set("inner", state);
        state = outer;
      },
      StateError);
  EXPECT_EQ(again(state), state);
}

TEST(State, RefusesWhatJsonCannotHold) {
  State state;
  EXPECT_THROW(state.set("x", std::numeric_limits<double>::infinity()), StateError);
  EXPECT_THROW(state.set("x", std::numeric_limits<double>::quiet_NaN()), StateError);
  EXPECT_THROW(state.set("x", "\xC3\x28"), StateError);
  EXPECT_THROW(state.set("\xFF", 1), StateError);
  EXPECT_EQ(state, State());
}

}  // namespace
}  // namespace infeed
