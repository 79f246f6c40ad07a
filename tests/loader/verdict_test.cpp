// The verdict is a function of figures: here the figures are made up. Real pipelines: faulty_pipelines_test.cpp.

#include "infeed/loader/verdict.h"

#include <gtest/gtest.h>

#include "infeed/base/error.h"
#include "infeed/loader/stager.h"
#include "infeed/loader/stats.h"

namespace infeed {
namespace {

/// 100 batches of 10 samples in 10 s; 2 workers on 8 CPUs decode 14 ms of 15 ms a sample and are always busy.
LoaderStats decode_bound() {
  LoaderStats s;
  s.batches = 100;
  s.samples = 1000;
  s.elapsed_s = 10;
  s.samples_per_s = 100;
  s.wait_s = 6.3;
  s.starved_share = 0.63;
  s.trainer_s = 3.6;
  s.hand_over_s = 0.1;
  s.worst_tenth_share = 0.12;
  s.read_us = 500;
  s.decode_us = 14'000;
  s.transform_us = 500;
  s.on_cpu_share = 0.98;
  s.cpu_queue_share = 0.01;
  s.trainer_cpu_queue_share = 0.01;
  s.num_workers = 2;
  s.prefetch = 2;
  s.usable_cpus = 8;
  s.workers = {{.id = 0, .pid = 100, .samples = 500, .busy_s = 7.5},
               {.id = 1, .pid = 101, .samples = 500, .busy_s = 7.5}};
  return s;
}

/// The trainer takes all its time.
LoaderStats compute_bound() {
  LoaderStats s = decode_bound();
  s.wait_s = 0.1;
  s.trainer_s = 9.8;
  s.decode_us = 1'000;
  s.blocked_share = 0.8;
  return s;
}

StagerStats staged(double copy_share) {
  return {.batches = 100,
          .bytes = 1'000'000'000,
          .elapsed_s = 10,
          .copy_s = copy_share * 10,
          .copy_bytes_per_s = 1e9 / (copy_share * 10),
          .copy_share = copy_share,
          .starved_share = 0.5,
          .registrations = 4,
          .registered_bytes = 40'000'000};
}

void expect(const Verdict& verdict, Bound bound, Cause cause) {
  EXPECT_STREQ(to_string(verdict.bound), to_string(bound)) << verdict.str();
  EXPECT_STREQ(to_string(verdict.cause), to_string(cause)) << verdict.str();
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(VerdictTest, SaysInWordsWhatBoundsAndWhatToTurn) {
  const Verdict verdict = decode_bound().verdict();
  expect(verdict, Bound::kInput, Cause::kDecode);
  EXPECT_EQ(
      verdict.finding,
      "Input-bound: the trainer waited for data 63 % of the time; 2 workers decode for 14.0 ms of 15.0 ms a sample.");
  EXPECT_EQ(verdict.advice, "num_workers=5 would keep up with the trainer.");
  ASSERT_EQ(verdict.knobs.size(), 1u);
  EXPECT_EQ(verdict.knobs[0].option + "=" + verdict.knobs[0].value, "num_workers=5");
}

TEST(VerdictTest, ProposesNoMoreWorkersThanProcessorsForWorkThatComputes) {
  LoaderStats s = decode_bound();
  s.usable_cpus = 3;
  EXPECT_EQ(s.verdict().knobs.at(0).value, "3");
  EXPECT_TRUE(has(s.verdict().advice, "all that 3.0 CPUs can")) << s.verdict().advice;
}

TEST(VerdictTest, ProposesACheaperSampleWhereAllProcessorsWork) {
  LoaderStats s = decode_bound();
  s.usable_cpus = 2;
  EXPECT_TRUE(s.verdict().knobs.empty());
  EXPECT_TRUE(has(s.verdict().advice, "infeed prepare")) << s.verdict().advice;
}

TEST(VerdictTest, LetsMoreWorkersThanProcessorsWaitForASlowDisk) {
  LoaderStats s = decode_bound();
  std::swap(s.read_us, s.decode_us);
  s.on_cpu_share = 0.1;
  s.usable_cpus = 2;
  expect(s.verdict(), Bound::kInput, Cause::kRead);
  EXPECT_EQ(s.verdict().knobs.at(0).value, "5");
}

TEST(VerdictTest, NamesAHeavyCollate) {
  LoaderStats s = decode_bound();
  s.collate_us = 30'000;
  expect(s.verdict(), Bound::kInput, Cause::kCollate);
}

TEST(VerdictTest, NamesTheDatasetWhereItTellsNoStages) {
  LoaderStats s = decode_bound();
  s.other_us = 30'000;
  expect(s.verdict(), Bound::kInput, Cause::kDataset);
}

TEST(VerdictTest, ATrainerThatNeverWaitsIsComputeBound) {
  LoaderStats s = compute_bound();
  expect(s.verdict(), Bound::kCompute, Cause::kTrainer);
  EXPECT_NEAR(s.verdict().share, 0.98, 1e-9);
  EXPECT_EQ(s.verdict().knobs.at(0).value, "1") << s.verdict().advice;
}

TEST(VerdictTest, ATrainerThatQueuesForAProcessorIsStarved) {
  LoaderStats s = compute_bound();
  s.trainer_cpu_queue_share = 0.4;
  expect(s.verdict(), Bound::kCompute, Cause::kTrainerStarved);
}

TEST(VerdictTest, WorkersThatQueueForProcessorsAreTooMany) {
  LoaderStats s = decode_bound();
  s.num_workers = 8;
  s.usable_cpus = 2;
  s.on_cpu_share = 0.28;
  s.cpu_queue_share = 0.7;
  expect(s.verdict(), Bound::kInput, Cause::kOversubscribed);
  EXPECT_EQ(s.verdict().knobs.at(0).value, "2");
}

TEST(VerdictTest, LateBatchesNowAndThenAreBurstyAndWantPrefetch) {
  LoaderStats s = decode_bound();
  s.worst_tenth_share = 0.9;
  s.longest_wait_ms = 600;
  s.blocked_share = 0.5;
  expect(s.verdict(), Bound::kBursty, Cause::kUnevenSamples);
  EXPECT_EQ(s.verdict().knobs.at(0).option, "prefetch");
}

TEST(VerdictTest, WorkersThatAreAlwaysBusyAreNotBursty) {
  LoaderStats s = decode_bound();
  s.worst_tenth_share = 0.9;
  expect(s.verdict(), Bound::kInput, Cause::kDecode);
}

TEST(VerdictTest, ASamplerThatPausesIsBursty) {
  LoaderStats s = decode_bound();
  s.sampler_s = 6;
  s.wait_s = 0.3;
  s.worst_tenth_share = 0.9;
  expect(s.verdict(), Bound::kBursty, Cause::kSampler);
  s.worst_tenth_share = 0.1;
  expect(s.verdict(), Bound::kInput, Cause::kSampler);
}

TEST(VerdictTest, NamesTheOneSlowWorker) {
  LoaderStats s = decode_bound();
  s.workers.push_back({.id = 2, .pid = 102, .samples = 100, .busy_s = 9});
  expect(s.verdict(), Bound::kInput, Cause::kSlowWorker);
  EXPECT_TRUE(has(s.verdict().finding, "worker 2 takes 90.0 ms a sample, the others 15.0 ms")) << s.verdict().finding;
}

TEST(VerdictTest, NamesAStoppedWorkerAtOnce) {
  LoaderStats s = compute_bound();
  s.batches = 1;
  s.workers[1].stopped = true;
  expect(s.verdict(), Bound::kInput, Cause::kStoppedWorker);
  EXPECT_TRUE(has(s.verdict().advice, "kill -CONT 101"));
}

TEST(VerdictTest, NamesAWorkerThatIsLostInASample) {
  LoaderStats s = decode_bound();
  s.workers[0].in_hand_s = 60;
  expect(s.verdict(), Bound::kInput, Cause::kStoppedWorker);
}

TEST(VerdictTest, ASmallBudgetIsNamedBeforeWhatItCauses) {
  LoaderStats s = decode_bound();
  s.short_of_memory_share = 0.9;
  s.memory_limit = 1000;
  expect(s.verdict(), Bound::kInput, Cause::kMemoryBudget);
  EXPECT_EQ(s.verdict().knobs.at(0).option, "memory_limit");
}

TEST(VerdictTest, IdleWorkersBesideAWaitingTrainerWantMorePrefetch) {
  LoaderStats s = decode_bound();
  s.prefetch = 1;
  s.blocked_share = 0.6;
  expect(s.verdict(), Bound::kInput, Cause::kPrefetch);
}

TEST(VerdictTest, CopiesThatNeverPauseAreTheBound) {
  LoaderStats s = decode_bound();
  s.wait_s = 0.5;
  expect(judge(s, staged(0.97)), Bound::kTransfer, Cause::kLink);
}

TEST(VerdictTest, CopiesFromUnregisteredMemoryAreNamed) {
  LoaderStats s = decode_bound();
  s.wait_s = 0.5;
  StagerStats stager = staged(0.97);
  stager.registrations = 0;
  expect(judge(s, stager), Bound::kTransfer, Cause::kUnregisteredMemory);
  EXPECT_EQ(judge(s, stager).knobs.at(0).option, "register_memory");
}

TEST(VerdictTest, PageLocksAloneChangeNothing) {
  LoaderStats s = decode_bound();
  const Verdict without = s.verdict();
  s.staging = StagerStats{.registrations = 4, .registered_bytes = 1 << 20};
  expect(s.verdict(), without.bound, without.cause);
}

TEST(VerdictTest, AStagerThatWaitsForTheLoaderIsInputBound) {
  expect(judge(decode_bound(), staged(0.2)), Bound::kInput, Cause::kDecode);
}

TEST(VerdictTest, AWaitingStagerThreadIsNoWaitingTrainer) {
  StagerStats stager = staged(0.2);
  stager.starved_share = 0.01;
  expect(judge(decode_bound(), stager), Bound::kCompute, Cause::kTrainer);
}

TEST(VerdictTest, SaysNothingOfAFewBatches) {
  LoaderStats s = decode_bound();
  s.batches = 3;
  expect(s.verdict(), Bound::kUnknown, Cause::kNone);
  EXPECT_FALSE(LoaderStats().str().empty());
}

TEST(StatsStateTest, ComesBackFromJson) {
  const LoaderStats s = decode_bound();
  const LoaderStats back = LoaderStats::from_state(State::from_json(s.to_state().to_json()));
  EXPECT_EQ(back.to_state(), s.to_state());
  EXPECT_EQ(back.workers.size(), 2u);
  EXPECT_EQ(s.to_state().get_state("verdict").get_string("cause"), "decode");
}

TEST(StatsStateTest, TakesWhatIsThere) {
  EXPECT_EQ(LoaderStats::from_state(State::from_json(R"({"batches": 7})")).batches, 7u);
  EXPECT_THROW((void)LoaderStats::from_state(State::from_json(R"({"batches": "x"})")), StateError);
}

}  // namespace
}  // namespace infeed
