// num_workers = auto for exchanges: what the memory allows. What the trainer needs is tests/loader/auto_workers_test.cpp.

#include "infeed/exchange/auto_count.h"

#include "exchange/rig.h"

namespace infeed::testing {
namespace {

/// Turns of a trainer that waits for nothing while `worker` finds nothing to do, until the number changes.
std::string first_change(AutoCount& count, const Exchange& exchange, ExchangeWorker& worker) {
  for (;;) {
    count.turn_began();
    if (const auto why = count.turn_ended(true, exchange)) return *why;
    static_cast<void>(worker.claim(1));
  }
}

TEST(AutoCountTest, BeginsWithHalfOfTheProcessors) {
  EXPECT_EQ(AutoCount({.usable_cpus = 1}).workers(), 1);
  EXPECT_EQ(AutoCount({.usable_cpus = 6}).workers(), 3);
  EXPECT_EQ(AutoCount({.usable_cpus = 64}).workers(), 4);
}

TEST(AutoCountTest, BeginsWithOneWhereThereIsABudget) {
  EXPECT_EQ(AutoCount({.memory_budget = std::uint64_t{1} << 40, .usable_cpus = 64}).workers(), 1);
}

TEST(AutoCountTest, RefusesABudgetBelowWhatTheProcessHas) {
  EXPECT_NE(error_of<ConfigError>([] { AutoCount({.memory_budget = 1}); }).find("memory_budget"), std::string::npos);
}

TEST(AutoCountTest, TakesIdleWorkersAway) {
  AutoCount count({.usable_cpus = 8});
  Exchange exchange({.num_workers = 4});
  ExchangeWorker worker(exchange.handle(), 0);
  EXPECT_NE(first_change(count, exchange, worker).find("idle"), std::string::npos);
  EXPECT_LT(count.workers(), 4);
}

TEST(AutoCountTest, StaysWhereMoreCouldNotBeHad) {
  AutoCount count({.usable_cpus = 8});
  count.refuse(2, "no process can be started");
  EXPECT_EQ(count.workers(), 2);
  EXPECT_EQ(count.most(), 2);
}

}  // namespace
}  // namespace infeed::testing
