// The verdict on real pipelines and planted faults. Costs are sleeps, with wide margins. A machine that takes the
// processor away for long changes what a pipeline is bound by, so each gets some tries.

#include <gtest/gtest.h>
#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <deque>
#include <functional>
#include <thread>

#include "infeed/base/error.h"
#include "infeed/collate/stack.h"
#include "infeed/device/simulated.h"
#include "infeed/loader/loader.h"
#include "infeed/loader/stager.h"
#include "support/processors.h"

namespace infeed {
namespace {

using namespace std::chrono_literals;
using std::chrono::microseconds;

constexpr int kTries = 8;

void spin(microseconds time) {
  timespec begin{}, now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
  do {
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  } while ((now.tv_sec - begin.tv_sec) * 1'000'000'000L + now.tv_nsec - begin.tv_nsec < time.count() * 1000);
}

std::atomic<int> slowness{1};  // of this process: set by a worker_init

/// Samples whose stages take as long as one says.
class CostlyDataset final : public Dataset {
 public:
  struct Costs {
    microseconds read{0}, decode{0}, compute{0};
    std::int64_t burst_every = 0;  ///< samples; the first four of them cost 100 times as much
    std::int64_t sample_bytes = 8;
  };
  explicit CostlyDataset(const Costs& costs) : costs_(costs), schema_({{"x", DType::kUInt8, {costs.sample_bytes}}}) {}

  [[nodiscard]] std::int64_t size() const override { return 1'000'000; }
  [[nodiscard]] const Schema& schema() const override { return schema_; }
  void read(Row& row) const override {
    const bool bursts = costs_.burst_every > 0 && row.index() % costs_.burst_every < 4;
    const int factor = slowness * (bursts ? 100 : 1);
    StageTimes& times = *row.context().times;
    times.read_ns += pass(costs_.read * factor);
    times.decode_ns += pass(costs_.decode * factor);
    if (costs_.compute > 0us) spin(costs_.compute);
  }

 private:
  static std::uint64_t pass(microseconds time) {
    const auto begin = std::chrono::steady_clock::now();
    if (time > 0us) std::this_thread::sleep_for(time);
    const std::chrono::nanoseconds took = std::chrono::steady_clock::now() - begin;
    return static_cast<std::uint64_t>(took.count());
  }
  Costs costs_;
  Schema schema_;
};

void train(Loader& loader, int batches, microseconds step) {
  for (int i = 0; i < batches && loader.next(); ++i) {
    if (step > 0us) std::this_thread::sleep_for(step);
  }
}

using Finding = std::pair<Bound, Cause>;
std::string text(const Finding& f) { return std::string(to_string(f.first)) + ", " + to_string(f.second); }

void expect_found(const Finding& wanted, const std::function<Verdict()>& run) {
  Verdict last;
  for (int i = 0; i < kTries; ++i) {
    last = run();
    if (Finding(last.bound, last.cause) == wanted) return;
  }
  ADD_FAILURE() << "wanted " << text(wanted) << ", found " << text({last.bound, last.cause}) << ": " << last.str();
}

LoaderOptions options(int workers = 2) { return {.batch_size = 4, .num_workers = workers, .prefetch = 2}; }
LoaderOptions forked(int workers) {
  LoaderOptions result = options(workers);
  result.worker_kind = WorkerKind::kFork;
  return result;
}

Verdict run(const CostlyDataset::Costs& costs, microseconds step, LoaderOptions given, int batches = 30) {
  const CostlyDataset dataset(costs);
  Loader loader(dataset, std::move(given));
  train(loader, batches, step);
  return loader.stats().verdict();
}

Verdict run_staged(const CostlyDataset::Costs& costs, const SimulatedOptions& device, const StagerOptions& staging) {
  const CostlyDataset dataset(costs);
  Loader loader(dataset, options());
  const auto simulated = std::make_shared<SimulatedDevice>(device);
  Stager stager(loader, simulated, staging);
  for (int i = 0; i < 30; ++i) {
    auto batch = stager.next();
    stager.compute_stream().synchronize();  // a step that needs the batch
  }
  return judge(loader.stats(), stager.stats());
}

bool kernel_tells_of_queues() {
  const CostlyDataset dataset({});
  Loader loader(dataset, forked(1));
  train(loader, 2, 0us);
  return loader.stats().trainer_cpu_queue_share >= 0;
}

// --- five pipelines ---------------------------------------------------------------------------------------------------

TEST(PipelineTest, SlowDecodeIsInputBound) {
  expect_found({Bound::kInput, Cause::kDecode}, [] { return run({.read = 200us, .decode = 3ms}, 0us, options()); });
}

TEST(PipelineTest, ASlowDiskIsInputBoundAndWantsMoreWorkersThanProcessors) {
  expect_found({Bound::kInput, Cause::kRead}, [] { return run({.read = 3ms, .decode = 200us}, 1ms, options()); });
}

TEST(PipelineTest, ANarrowLinkIsTransferBound) {
  expect_found({Bound::kTransfer, Cause::kLink},
               [] { return run_staged({.sample_bytes = 65'536}, {.bandwidth_bytes_per_s = 20e6}, {}); });
}

TEST(PipelineTest, ASlowStepIsComputeBound) {
  expect_found({Bound::kCompute, Cause::kTrainer}, [] { return run({.decode = 200us}, 10ms, options()); });
}

TEST(PipelineTest, CostlySamplesNowAndThenAreBursty) {
  expect_found({Bound::kBursty, Cause::kUnevenSamples},
               [] { return run({.decode = 300us, .burst_every = 4 * 15}, 4ms, options(), 60); });
}

TEST(PipelineTest, ALoaderWithADeviceTellsOfItsCopies) {
  const CostlyDataset dataset({.sample_bytes = 65'536});
  LoaderOptions given = options();
  given.device = "simulated:0";
  Loader loader(dataset, std::move(given));
  train(loader, 10, 0us);
  ASSERT_TRUE(loader.stats().staging);
  EXPECT_EQ(loader.stats().staging->batches, 10u);
  EXPECT_TRUE(LoaderStats::from_state(loader.stats().to_state()).staging);
}

// --- faults -----------------------------------------------------------------------------------------------------------

TEST(FaultTest, OneSlowWorker) {
  expect_found({Bound::kInput, Cause::kSlowWorker}, [] {
    LoaderOptions given = forked(3);
    given.worker_init = [](const WorkerInfo& info) { slowness = info.id == 1 ? 8 : 1; };
    return run({.decode = 1ms}, 0us, std::move(given), 60);
  });
}

TEST(FaultTest, ASmallBudget) {
  expect_found({Bound::kInput, Cause::kMemoryBudget}, [] {
    const CostlyDataset dataset({.decode = 1ms, .sample_bytes = 4096});
    LoaderOptions given = options();
    given.memory_limit = 3 * 4 * 4096 + 4096;
    Loader loader(dataset, std::move(given));
    std::deque<Batch> held;
    for (int i = 0; i < 30; ++i) {
      if (held.size() == 2) held.pop_front();
      held.push_back(loader.next().value());
    }
    return loader.stats().verdict();
  });
}

TEST(FaultTest, UnregisteredMemory) {
  expect_found({Bound::kTransfer, Cause::kUnregisteredMemory}, [] {
    return run_staged({.sample_bytes = 65'536}, {.bandwidth_bytes_per_s = 50e6}, {.register_memory = false});
  });
}

TEST(FaultTest, ATrainerThatFindsNoProcessor) {
  if (!kernel_tells_of_queues()) GTEST_SKIP() << "no schedstat in /proc";
  expect_found({Bound::kCompute, Cause::kTrainerStarved}, [] {
    const testing::OneProcessor one;
    const CostlyDataset dataset({.compute = 2ms});
    LoaderOptions given = forked(4);
    given.prefetch = 4;
    Loader loader(dataset, std::move(given));
    train(loader, 6, 0us);
    loader.reset_stats();
    for (int i = 0; i < 30 && loader.next(); ++i) spin(20ms);
    return loader.stats().verdict();
  });
}

TEST(FaultTest, MoreWorkersThanProcessors) {
  if (!kernel_tells_of_queues()) GTEST_SKIP() << "no schedstat in /proc";
  expect_found({Bound::kInput, Cause::kOversubscribed}, [] {
    const testing::OneProcessor one;
    return run({.compute = 1ms}, 0us, forked(6));
  });
}

/// Costs `time` a batch.
class HeavyCollate final : public Collate {
 public:
  void operator()(const Schema& schema, std::span<const std::vector<ArrayView>> rows,
                  CollateOutput& out) const override {
    std::this_thread::sleep_for(20ms);
    StackCollate()(schema, rows, out);
  }
};

TEST(FaultTest, AHeavyCollate) {
  expect_found({Bound::kInput, Cause::kCollate}, [] {
    LoaderOptions given = options();
    given.prefetch = 4;
    given.collate = std::make_shared<HeavyCollate>();
    return run({.decode = 500us}, 0us, std::move(given));
  });
}

/// In order, with a pause before each 12th batch.
class PausingSampler final : public Sampler {
 public:
  void start_epoch(std::uint64_t /*epoch*/) override { next_ = 0; }
  std::size_t next(std::span<std::int64_t> indices) override {
    if (next_ / 4 % 12 == 11) std::this_thread::sleep_for(60ms);
    for (std::int64_t& index : indices) index = next_++;
    return indices.size();
  }
  [[nodiscard]] std::optional<std::int64_t> size() const override { return std::nullopt; }
  void save(State& /*state*/) const override {}
  void load(const State& /*state*/) override {}

 private:
  std::int64_t next_ = 0;
};

TEST(FaultTest, ABurstySampler) {
  expect_found({Bound::kBursty, Cause::kSampler}, [] {
    LoaderOptions given = options();
    given.sampler = std::make_unique<PausingSampler>();
    return run({.decode = 200us}, 2ms, std::move(given), 60);
  });
}

TEST(FaultTest, AStoppedWorker) {
  const CostlyDataset dataset({.decode = 1ms});
  LoaderOptions given = forked(2);
  given.timeout_ms = 500;
  Loader loader(dataset, std::move(given));
  train(loader, 4, 0us);
  const auto pid = static_cast<pid_t>(loader.stats().workers.at(1).pid);
  ASSERT_EQ(kill(pid, SIGSTOP), 0);
  while (!loader.stats().workers.at(1).stopped) std::this_thread::yield();
  try {
    train(loader, 20, 0us);  // comes to a halt where it held rows
  } catch (const TimeoutError&) {
  }
  const Verdict verdict = loader.stats().verdict();
  kill(pid, SIGCONT);
  EXPECT_EQ(text({verdict.bound, verdict.cause}), text({Bound::kInput, Cause::kStoppedWorker})) << verdict.str();
}

TEST(StatsTest, NextThatWaitsIsSeenToWait) {
  const CostlyDataset dataset({.decode = 1ms});
  Loader loader(dataset, forked(1));
  train(loader, 2, 0us);
  loader.reset_stats();
  const auto pid = static_cast<pid_t>(loader.stats().workers.at(0).pid);
  kill(pid, SIGSTOP);
  std::thread trainer([&] { train(loader, 4, 0us); });
  while (loader.stats().starved_share < 0.5 || loader.stats().wait_s < 0.05) std::this_thread::yield();
  kill(pid, SIGCONT);
  trainer.join();
  EXPECT_EQ(loader.stats().batches, 4u);
}

TEST(StatsTest, ThePartsOfTheTimeAreTheWhole) {
  const CostlyDataset dataset({.decode = 1ms});
  Loader loader(dataset, options());
  train(loader, 10, 2ms);
  const LoaderStats s = loader.stats();
  EXPECT_NEAR(s.wait_s + s.sampler_s + s.hand_over_s + s.trainer_s, s.elapsed_s, 1e-6);
  EXPECT_GE(s.trainer_s, 9 * 2e-3);
  EXPECT_NE(s.str().find(s.verdict().finding), std::string::npos);
}

}  // namespace
}  // namespace infeed
