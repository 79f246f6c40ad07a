#pragma once
/// What every Sampler must do. A test file instantiates SamplerConformance with its cases.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "infeed/base/error.h"
#include "infeed/sampler/sampler.h"

namespace infeed {

struct SamplerCase {
  std::string name;
  std::int64_t dataset_size;  ///< indices lie in [0, dataset_size)
  std::int64_t count;         ///< indices of one epoch
  bool shuffled;              ///< epochs differ
  std::function<std::unique_ptr<Sampler>()> make;
};

inline void PrintTo(const SamplerCase& sampler, std::ostream* out) { *out << sampler.name; }

/// Verbs over one case.
class SamplerConformance : public ::testing::TestWithParam<SamplerCase> {
 protected:
  using Indices = std::vector<std::int64_t>;

  /// What is left of the epoch, asked for `step` at a time.
  static Indices drain(Sampler& sampler, std::size_t step = 7) {
    Indices all;
    Indices part(step);
    while (const std::size_t got = sampler.next(part))
      all.insert(all.end(), part.begin(), part.begin() + static_cast<std::ptrdiff_t>(got));
    return all;
  }

  static Indices epoch(Sampler& sampler, std::uint64_t number, std::size_t step = 7) {
    sampler.start_epoch(number);
    return drain(sampler, step);
  }

  static State saved(const Sampler& sampler) {
    State state;
    sampler.save(state);
    return State::from_json(state.to_json());
  }

  static void take(Sampler& sampler, std::int64_t count) {
    Indices part(static_cast<std::size_t>(count));
    ASSERT_EQ(sampler.next(part), part.size());
  }

  std::unique_ptr<Sampler> make() const { return GetParam().make(); }
  std::int64_t count() const { return GetParam().count; }
  /// Positions to try: all of a short epoch, some of a long one.
  Indices positions() const {
    Indices chosen;
    for (std::int64_t at = 0; at <= count(); at += std::max<std::int64_t>(1, count() / 40)) chosen.push_back(at);
    if (chosen.back() != count()) chosen.push_back(count());
    return chosen;
  }
};

TEST_P(SamplerConformance, YieldsAsManyAsItsSizeAllInRange) {
  const auto sampler = make();
  const Indices order = epoch(*sampler, 0);
  EXPECT_EQ(sampler->size(), count());
  EXPECT_EQ(static_cast<std::int64_t>(order.size()), count());
  for (const std::int64_t index : order) ASSERT_TRUE(index >= 0 && index < GetParam().dataset_size) << index;
}

TEST_P(SamplerConformance, StandsAtTheStartOfEpochZeroWhenMade) { EXPECT_EQ(drain(*make()), epoch(*make(), 0)); }

TEST_P(SamplerConformance, RepeatsAnEpochExactly) {
  const auto sampler = make();
  const Indices first = epoch(*sampler, 3);
  static_cast<void>(epoch(*sampler, 4));
  EXPECT_EQ(epoch(*sampler, 3), first);
  EXPECT_EQ(epoch(*make(), 3), first);
}

TEST_P(SamplerConformance, ShufflesEpochsDifferentlyOrNotAtAll) {
  if (count() < 10) return;  // too short to tell
  const auto sampler = make();
  EXPECT_EQ(epoch(*sampler, 0) != epoch(*sampler, 1), GetParam().shuffled);
}

TEST_P(SamplerConformance, GivesTheSameOrderForAnySpan) {
  const auto sampler = make();
  const Indices order = epoch(*sampler, 1, 1);
  for (const std::size_t step : {2U, 31U, 32U, 33U, 1024U, 100000U}) EXPECT_EQ(epoch(*sampler, 1, step), order) << step;
}

TEST_P(SamplerConformance, YieldsNothingAfterTheEndUntilAnEpochStarts) {
  const auto sampler = make();
  static_cast<void>(epoch(*sampler, 0));
  Indices more(5);
  EXPECT_EQ(sampler->next(more), 0U);
  EXPECT_EQ(sampler->skip(5), 0);
  EXPECT_EQ(static_cast<std::int64_t>(epoch(*sampler, 1).size()), count());
}

TEST_P(SamplerConformance, YieldsNothingIntoAnEmptySpan) {
  const auto sampler = make();
  EXPECT_EQ(sampler->next({}), 0U);
  EXPECT_EQ(static_cast<std::int64_t>(drain(*sampler).size()), count());
}

TEST_P(SamplerConformance, DropsWhatIsLeftWhenAnEpochStarts) {
  const auto sampler = make();
  take(*sampler, count() / 2);
  EXPECT_EQ(epoch(*sampler, 1), epoch(*make(), 1));
}

TEST_P(SamplerConformance, SkipsAsItDraws) {
  for (const std::int64_t at : positions()) {
    const auto drawn = make();
    const auto skipped = make();
    drawn->start_epoch(2);
    skipped->start_epoch(2);
    take(*drawn, at);
    ASSERT_EQ(skipped->skip(at), at);
    ASSERT_EQ(drain(*skipped), drain(*drawn)) << "after " << at;
  }
}

TEST_P(SamplerConformance, SkipsNoFurtherThanTheEnd) {
  const auto sampler = make();
  EXPECT_EQ(sampler->skip(count() + 100), count());
  EXPECT_TRUE(drain(*sampler).empty());
}

TEST_P(SamplerConformance, ResumesAtEveryPosition) {
  for (const std::int64_t at : positions()) {
    const auto sampler = make();
    sampler->start_epoch(5);
    take(*sampler, at);
    const auto resumed = make();
    resumed->load(saved(*sampler));
    ASSERT_EQ(drain(*resumed), drain(*sampler)) << "after " << at;
    ASSERT_EQ(epoch(*resumed, 6), epoch(*sampler, 6)) << "after " << at;
  }
}

TEST_P(SamplerConformance, SavesTheSameStateAfterAResume) {
  const auto sampler = make();
  sampler->start_epoch(1);
  take(*sampler, count() / 3);
  const State state = saved(*sampler);
  const auto resumed = make();
  resumed->load(state);
  EXPECT_EQ(saved(*resumed), state);
  EXPECT_LT(state.to_json().size(), 400U);
}

TEST_P(SamplerConformance, SavesWithoutDisturbing) {
  const auto sampler = make();
  sampler->start_epoch(1);
  static_cast<void>(saved(*sampler));
  take(*sampler, count() / 3);
  static_cast<void>(saved(*sampler));
  Indices rest = drain(*sampler);
  Indices order = epoch(*make(), 1);
  EXPECT_TRUE(std::equal(rest.begin(), rest.end(), order.end() - static_cast<std::ptrdiff_t>(rest.size())));
}

TEST_P(SamplerConformance, TellsTheStateOfAnEarlierPositionOrSaysThatItCannot) {
  for (const std::int64_t at : positions()) {
    const auto ahead = make();
    const auto behind = make();
    take(*ahead, count());
    take(*behind, at);
    State state;
    if (!ahead->save_at(at, state)) return;
    ASSERT_EQ(state, saved(*behind)) << "after " << at;
  }
}

TEST_P(SamplerConformance, RefusesAForeignState) {
  const auto sampler = make();
  State foreign = saved(*sampler);
  foreign.set("type", "AnotherSampler");
  EXPECT_THROW(sampler->load(foreign), StateError);
  EXPECT_THROW(sampler->load(State()), StateError);
}

TEST_P(SamplerConformance, RefusesAStateWithAnythingChanged) {
  const auto sampler = make();
  for (const std::string& key : saved(*sampler).keys()) {
    if (key == "epoch") continue;  // any epoch is a good one
    State changed = saved(*sampler);
    changed.set(key, -7);
    EXPECT_THROW(sampler->load(changed), StateError) << key;
  }
}

TEST_P(SamplerConformance, StaysAsItWasWhenAStateIsRefused) {
  const auto sampler = make();
  sampler->start_epoch(2);
  take(*sampler, count() / 2);
  const State before = saved(*sampler);
  State bad = before;
  bad.set("epoch", "two");
  EXPECT_THROW(sampler->load(bad), StateError);
  EXPECT_EQ(saved(*sampler), before);
}

inline std::string sampler_case_name(const ::testing::TestParamInfo<SamplerCase>& info) { return info.param.name; }

}  // namespace infeed
