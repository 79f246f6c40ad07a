#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <numeric>

#include "exchange/rig.h"

namespace infeed::testing {
namespace {

using Kind = ExchangeEvent::Kind;

class ExchangeTest : public ::testing::Test {
 protected:
  Exchange exchange{{.num_workers = 2, .num_slots = 4}};
  ExchangeWorker port{exchange.handle(), 0};
};

TEST_F(ExchangeTest, AnswersTasksOfIndicesAndOfBytes) {
  post(exchange, 7, 0, {3, -4});
  post_text(exchange, 8, 0, "hello");
  for (int i = 0; i < 2; ++i) reply(port, answer_to(claim_one(port)));
  EXPECT_EQ(receive(exchange, 8), "8= hello");
  EXPECT_EQ(receive(exchange, 7), "7: 3 -4");
}

TEST_F(ExchangeTest, AWorkerSeesItsOwnTasksAloneInTheOrderOfPosting) {
  post_text(exchange, 5, 1, "not yours");
  post_text(exchange, 9, 0, "first");
  post_text(exchange, 2, 0, "second");
  for (const std::uint64_t expected : {9U, 2U}) {
    EXPECT_EQ(claim_one(port).number, expected);
    port.publish(0);
  }
  EXPECT_FALSE(port.claim(0));
}

TEST_F(ExchangeTest, WaitGivesTheFirstReadyOfTheNumbersAndNoneOfTheOthers) {
  for (const std::uint64_t number : {1U, 2U, 3U}) post_text(exchange, number, 0, "");
  for (int i = 0; i < 2; ++i) reply(port, answer_to(claim_one(port)));
  const std::vector<std::uint64_t> numbers{3, 2, 1};
  const ExchangeEvent event = exchange.wait(numbers, {}, -1);
  EXPECT_EQ(event.kind, Kind::kReady);
  EXPECT_EQ(event.index, 1U);
  EXPECT_EQ(exchange.wait(std::span(numbers).first(1), {}, 0).kind, Kind::kNone);
}

TEST_F(ExchangeTest, AReadyNumberWinsOverADeath) {
  const int dead = eventfd(1, EFD_CLOEXEC);
  const std::vector<int> deaths{exchange.handle().ready_fd(), dead};
  post_text(exchange, 1, 0, "");
  const std::vector<std::uint64_t> numbers{1};
  const ExchangeEvent death = exchange.wait(numbers, deaths, -1);
  EXPECT_EQ(death.kind, Kind::kDeath);
  EXPECT_EQ(death.index, 1U);
  reply(port, answer_to(claim_one(port)));
  EXPECT_EQ(exchange.wait(numbers, deaths, -1).kind, Kind::kReady);
  close(dead);
}

TEST_F(ExchangeTest, SaysWhatCannotBePosted) {
  post_text(exchange, 1, 0, "");
  EXPECT_NE(error_of<ConfigError>([&] { post_text(exchange, 1, 0, ""); }).find("task 1 is in flight"),
            std::string::npos);
  EXPECT_NE(error_of<ConfigError>([&] { post_text(exchange, 2, 2, ""); }).find("worker 2 of 2"), std::string::npos);
  for (const std::uint64_t number : {2U, 3U, 4U}) post_text(exchange, number, 0, "");
  EXPECT_NE(error_of<Error>([&] { post_text(exchange, 5, 0, ""); }).find("no slot is free for task 5"),
            std::string::npos);
}

TEST_F(ExchangeTest, SaysWhatCannotBeTaken) {
  EXPECT_THROW(static_cast<void>(exchange.take(1)), Error);
  post_text(exchange, 1, 0, "");
  EXPECT_NE(error_of<Error>([&] { static_cast<void>(exchange.take(1)); }).find("not ready"), std::string::npos);
}

TEST_F(ExchangeTest, AWorkerPublishesWhatItClaimedOnce) {
  EXPECT_THROW(static_cast<void>(port.memory()), Error);
  EXPECT_THROW(port.publish(0), Error);
  post_text(exchange, 1, 0, "");
  static_cast<void>(claim_one(port));
  EXPECT_THROW(static_cast<void>(port.claim(0)), Error);
  EXPECT_THROW(port.publish(port.memory().size() + 1), ConfigError);
  port.publish(0);
  EXPECT_THROW(port.publish(0), Error);
}

TEST_F(ExchangeTest, RefusesSizesOutOfRange) {
  EXPECT_THROW(Exchange({.num_workers = 0}), ConfigError);
  EXPECT_THROW(Exchange({.num_workers = 257}), ConfigError);
  EXPECT_THROW(Exchange({.num_slots = 1 << 30}), ConfigError);
  EXPECT_THROW(ExchangeWorker(exchange.handle(), 2), ConfigError);
}

TEST_F(ExchangeTest, ATaskThatNobodyStartedIsCancelledForGood) {
  post_text(exchange, 1, 0, "");
  exchange.cancel(1);
  EXPECT_FALSE(port.claim(0));
  exchange.cancel(1);  // unknown by now
  for (std::uint64_t number = 2; number < 6; ++number) post_text(exchange, number, 0, "");
}

TEST_F(ExchangeTest, ACancelledTaskThatRunsGivesItsExtentBackWhenItIsDone) {
  post_text(exchange, 1, 0, "");
  static_cast<void>(claim_one(port));
  exchange.cancel(1);
  EXPECT_EQ(exchange.stats().extents_free, exchange.stats().extents - 1);
  port.publish(100);
  post_text(exchange, 2, 0, "");
  EXPECT_EQ(exchange.stats().extents_free, exchange.stats().extents);
}

TEST_F(ExchangeTest, NotesTheSampleInHand) {
  post(exchange, 11, 0, {40, 41});
  static_cast<void>(claim_one(port));
  port.note(41);
  EXPECT_EQ(exchange.sample_in_hand(0), std::pair(std::uint64_t{11}, std::int64_t{41}));
  port.publish(0);
  EXPECT_EQ(exchange.sample_in_hand(0).second, -1);
}

TEST_F(ExchangeTest, HeldMessagesOutliveTheExchangeUnchanged) {
  std::vector<ExchangeMessage> held;
  for (std::uint64_t number = 0; number < 50; ++number) {
    post_text(exchange, number, 0, std::string(number, 'x'));
    reply(port, answer_to(claim_one(port)));
    wait_for(exchange, number);
    held.push_back(exchange.take(number));
  }
  exchange.close();
  exchange.close();
  held.erase(held.begin(), held.begin() + 10);
  for (std::uint64_t i = 0; i < held.size(); ++i)
    EXPECT_EQ(text_of(held[i]), std::to_string(i + 10) + "= " + std::string(i + 10, 'x'));
}

TEST_F(ExchangeTest, AClosedExchangeSaysSo) {
  const ExchangeHandle handle = exchange.handle();
  exchange.close();
  EXPECT_NE(error_of<Error>([&] { post_text(exchange, 1, 0, ""); }).find("closed"), std::string::npos);
  EXPECT_THROW(static_cast<void>(exchange.stats()), Error);
  EXPECT_TRUE(port.stopping());
}

TEST_F(ExchangeTest, AHandleDoesNotKeepTheMemory) {
  auto other = std::make_unique<Exchange>(ExchangeOptions{});
  const ExchangeHandle handle = other->handle();
  other.reset();
  EXPECT_THROW(ExchangeWorker(handle, 0), Error);
}

// Free, so that its pages are known, then held.
TEST_F(ExchangeTest, ClosingKeepsTheMemoryOfHeldMessagesOnly) {
  constexpr std::size_t kBytes = std::size_t{8} << 20;
  std::vector<ExchangeMessage> held;
  for (std::uint64_t number = 0; number < 3; ++number) {
    post_text(exchange, number, 0, "");
    std::memset((static_cast<void>(claim_one(port)), port.memory().data()), 1, kBytes);
    port.publish(kBytes);
    held.push_back(exchange.take(number));
  }
  const int arena = fcntl(exchange.handle().arena_fd(), F_DUPFD_CLOEXEC, 3);
  const auto committed = [&] {
    struct stat status {};
    fstat(arena, &status);
    return static_cast<std::size_t>(status.st_blocks) * 512;
  };
  held.erase(held.begin());
  exchange.close();
  EXPECT_LT(committed(), 3 * kBytes);
  held.erase(held.begin());
  EXPECT_LT(committed(), 2 * kBytes);
  close(arena);
}

TEST(ExchangeLimitTest, MemoryLimitCountsWhatIsHeldAndTheMessageStaysReady) {
  Exchange exchange({.memory_limit = 3000});
  ExchangeWorker port(exchange.handle(), 0);
  const auto next = [&](std::uint64_t number) {
    post_text(exchange, number, 0, "");
    static_cast<void>(claim_one(port));
    port.publish(1400);
  };
  next(1), next(2);
  std::vector<ExchangeMessage> held{exchange.take(1), exchange.take(2)};
  next(3);
  EXPECT_NE(error_of<MemoryError>([&] { static_cast<void>(exchange.take(3)); }).find("2 batches"), std::string::npos);
  held.clear();
  EXPECT_EQ(exchange.take(3).bytes.size(), 1400U);
  EXPECT_EQ(exchange.stats().held_bytes, 0U);
}

TEST(ExchangeLimitTest, MoreHeldMessagesThanExtentsArePrivateCopies) {
  Exchange exchange({.extent_bytes = std::size_t{2} << 20});
  Threads workers(exchange, 1);
  std::vector<ExchangeMessage> held;
  const int extents = exchange.stats().extents;
  for (int i = 0; i < extents + 50; ++i) {
    const auto number = static_cast<std::uint64_t>(i);
    post(exchange, number, 0, {i});
    wait_for(exchange, number);
    held.push_back(exchange.take(number));
  }
  for (std::size_t i = 0; i < held.size(); ++i)
    ASSERT_EQ(text_of(held[i]), std::to_string(i) + ": " + std::to_string(i));
  EXPECT_GT(exchange.stats().extents_free, 0);
  held.clear();
  EXPECT_EQ(exchange.held(), 0);
  EXPECT_EQ(exchange.stats().extents_free, extents);
}

TEST(ExchangeLimitTest, TakesATaskOfAMillionIndicesAndRefusesOneTooLarge) {
  Exchange exchange({});
  ExchangeWorker port(exchange.handle(), 0);
  std::vector<std::int64_t> indices(1'000'000);
  std::iota(indices.begin(), indices.end(), 0);
  post(exchange, 0, 0, indices);
  const ExchangeTask task = claim_one(port);
  EXPECT_TRUE(std::equal(indices.begin(), indices.end(), task.indices.begin(), task.indices.end()));
  indices.resize(exchange.max_task_words() + 1);
  EXPECT_NE(error_of<ConfigError>([&] { post(exchange, 1, 0, indices); }).find("the largest may take"),
            std::string::npos);
}

TEST(ExchangeLimitTest, AttachesThroughDescriptorsAlone) {
  Exchange exchange({});
  const ExchangeHandle here = exchange.handle();
  const ExchangeHandle there = ExchangeHandle::adopt(dup(here.arena_fd()), dup(here.ready_fd()), here.geometry());
  ExchangeWorker port(there, 0);
  post_text(exchange, 1, 0, "by descriptors");
  reply(port, answer_to(claim_one(port)));
  EXPECT_EQ(receive(exchange, 1), "1= by descriptors");
}

TEST(ExchangeLimitTest, RefusesDescriptorsOfOtherSizes) {
  Exchange exchange({});
  const ExchangeHandle here = exchange.handle();
  ExchangeGeometry geometry = here.geometry();
  geometry.num_extents += 1;
  const ExchangeHandle there = ExchangeHandle::adopt(dup(here.arena_fd()), dup(here.ready_fd()), geometry);
  EXPECT_THROW(ExchangeWorker(there, 0), ConfigError);
}

TEST(ExchangeResizeTest, ATaskForAnyoneGoesToWhoeverIsFree) {
  Exchange exchange({.num_workers = 2});
  ExchangeWorker first(exchange.handle(), 0), second(exchange.handle(), 1);
  for (const std::uint64_t number : {1U, 2U}) post(exchange, number, Exchange::kAnyWorker, {});
  EXPECT_EQ(claim_one(first).number, 1U);
  EXPECT_EQ(claim_one(second).number, 2U);
}

TEST(ExchangeResizeTest, ARetiredWorkerFinishesItsTaskAndTakesNoOther) {
  Exchange exchange({.num_workers = 2});
  ExchangeWorker leaving(exchange.handle(), 0), staying(exchange.handle(), 1);
  for (const std::uint64_t number : {1U, 2U}) post(exchange, number, Exchange::kAnyWorker, {});
  const ExchangeTask task = claim_one(leaving);
  exchange.retire(0);
  reply(leaving, answer_to(task));
  EXPECT_TRUE(leaving.stopping());
  EXPECT_FALSE(leaving.claim(0));
  reply(staying, answer_to(claim_one(staying)));
  EXPECT_EQ(receive(exchange, 1) + receive(exchange, 2), "1:2:");
}

TEST(ExchangeResizeTest, TasksOfARetiredWorkerWaitUntilItsLikeIsRecruited) {
  Exchange exchange({});
  ExchangeWorker worker(exchange.handle(), 0);
  exchange.retire(0);
  post(exchange, 1, 0, {});
  EXPECT_FALSE(worker.claim(0));
  exchange.recruit(0);
  EXPECT_EQ(claim_one(worker).number, 1U);
}

TEST(ExchangeResizeTest, ARetiredWorkerIsNotCounted) {
  Exchange exchange({.num_workers = 3});
  exchange.retire(1);
  const LoaderStats stats = exchange.loader_stats(2);
  EXPECT_EQ(stats.num_workers, 2);
  EXPECT_EQ(stats.prefetch, 4);
  EXPECT_EQ(stats.workers.at(1).id, 2);
}

TEST(ExchangeResizeTest, BuryGivesTheTaskInHandToAnyOther) {
  Exchange exchange({.num_workers = 2});
  ExchangeWorker dead(exchange.handle(), 0), other(exchange.handle(), 1);
  for (const std::uint64_t number : {1U, 2U}) post(exchange, number, Exchange::kAnyWorker, {});
  static_cast<void>(claim_one(dead));
  EXPECT_EQ(exchange.bury(0), std::vector<std::uint64_t>{1});
  EXPECT_EQ(claim_one(other).number, 1U);
}

TEST(ExchangeResizeTest, RefusesToRetireWhomThereCannotBe) {
  Exchange exchange({.num_workers = 2});
  EXPECT_THROW(exchange.retire(2), ConfigError);
  EXPECT_THROW(exchange.recruit(-1), ConfigError);
}

}  // namespace
}  // namespace infeed::testing
