// Workers as threads over one mapping: what the thread sanitizer can follow.

#include <random>

#include "exchange/rig.h"

namespace infeed::testing {
namespace {

std::string expected(std::uint64_t number) { return std::to_string(number) + ": " + std::to_string(number * 3); }

TEST(ExchangeThreadsTest, ManyTasksComeBackOnceEach) {
  constexpr int kWorkers = 3;
  constexpr std::uint64_t kTasks = 3000, kDepth = 8;
  Exchange exchange({.num_workers = kWorkers, .num_slots = kDepth});
  Threads workers(exchange, kWorkers);
  for (std::uint64_t next = 0; next < kTasks + kDepth; ++next) {
    if (next >= kDepth) {
      ASSERT_EQ(receive(exchange, next - kDepth), expected(next - kDepth));
    }
    if (next < kTasks) post(exchange, next, static_cast<int>(next % kWorkers), {static_cast<int>(next) * 3});
  }
}

// A held message is read while later ones are written, and dropped on another thread.
TEST(ExchangeThreadsTest, MessagesAreReadAndDroppedOnOtherThreads) {
  Exchange exchange({.num_workers = 2, .num_slots = 4});
  Threads workers(exchange, 2);
  std::vector<std::jthread> readers;
  for (std::uint64_t number = 0; number < 300; ++number) {
    post(exchange, number, static_cast<int>(number % 2), {static_cast<int>(number) * 3});
    wait_for(exchange, number);
    readers.emplace_back([number, message = exchange.take(number)]() mutable {
      EXPECT_EQ(text_of(message), expected(number));
      message = {};
    });
    if (readers.size() > 8) readers.erase(readers.begin());
  }
  readers.clear();
  EXPECT_EQ(exchange.held(), 0);
}

TEST(ExchangeThreadsTest, CancelsAtAnyTimeWithoutLosingASlot) {
  Exchange exchange({.num_workers = 2, .num_slots = 4});
  Threads workers(exchange, 2);
  for (std::uint64_t number = 0; number < 2000; number += 2) {
    post(exchange, number, 0, {});
    while (number % 6 == 0 && !exchange.ready(number)) {
    }
    exchange.cancel(number);
    post_text(exchange, number + 1, 1, "x");
    ASSERT_EQ(receive(exchange, number + 1), std::to_string(number + 1) + "= x");
  }
  workers.stop();
  EXPECT_EQ(exchange.stats().extents_free, exchange.stats().extents);
}

/// Workers that come and go, of which the first stays.
class Shift {
 public:
  explicit Shift(Exchange& exchange, int most) : exchange_(exchange), threads_(static_cast<std::size_t>(most)) {
    for (int worker = 0; worker < most; ++worker) start(worker);
  }
  ~Shift() { exchange_.stop(); }
  void toggle(int worker) {
    std::jthread& thread = threads_[static_cast<std::size_t>(worker)];
    if (!thread.joinable()) return start(worker);
    exchange_.retire(worker);
    thread.join();
    EXPECT_TRUE(exchange_.bury(worker).empty());
  }

 private:
  void start(int worker) {
    exchange_.recruit(worker);
    threads_[static_cast<std::size_t>(worker)] =
        std::jthread([handle = exchange_.handle(), worker] { answer_until_stopped(handle, worker); });
  }
  Exchange& exchange_;
  std::vector<std::jthread> threads_;
};

TEST(ExchangeThreadsTest, WorkersComeAndGoAndEveryTaskComesBackOnce) {
  constexpr std::uint64_t kTasks = 2000, kDepth = 8;
  Exchange exchange({.num_workers = 4, .num_slots = kDepth});
  Shift workers(exchange, 4);
  std::mt19937 random(11);
  for (std::uint64_t next = 0; next < kTasks + kDepth; ++next) {
    if (next >= kDepth) {
      ASSERT_EQ(receive(exchange, next - kDepth), expected(next - kDepth));
    }
    if (next < kTasks) post(exchange, next, Exchange::kAnyWorker, {static_cast<int>(next) * 3});
    if (next % 5 == 0) workers.toggle(1 + static_cast<int>(random() % 3));
  }
}

TEST(ExchangeThreadsTest, ClosesWhileAnotherThreadWaits) {
  Exchange exchange({});
  post_text(exchange, 1, 0, "never claimed");
  std::jthread waiter([&] {
    const std::uint64_t number = 1;
    EXPECT_THROW(while (exchange.wait(std::span(&number, 1), {}, -1).kind == ExchangeEvent::Kind::kNone){}, Error);
  });
  while (exchange.stats().waits == 0) std::this_thread::yield();
  exchange.close();
}

}  // namespace
}  // namespace infeed::testing
