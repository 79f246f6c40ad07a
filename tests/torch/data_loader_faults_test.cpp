// What goes wrong: in a dataset, a transform, a collation, a worker, a fork, and between options.
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Parallel.h>
#include <gmock/gmock.h>

#include <future>
#include <limits>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>

#include "infeed/torch/data_loader.h"
#include "support/processes.h"
#include "torch/datasets.h"
#include "torch/values.h"

namespace infeed::torch {
namespace {

using infeed::testing::children;
using infeed::testing::Chunks;
using infeed::testing::Countdown;
using infeed::testing::expect_same;
using infeed::testing::ListSampler;
using infeed::testing::Numbers;
using infeed::testing::Odd;
using infeed::testing::Once;
using infeed::testing::SharedGate;
using infeed::testing::targets;
using infeed::testing::values;
using td::DataLoaderOptions;
using td::samplers::SequentialSampler;
using td::transforms::Stack;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

// Four batches of four; the second one throws.
class DataLoaderErrors : public ::testing::Test {
 protected:
  static auto faulty(std::size_t workers, WorkerKind kind = WorkerKind::kAuto) {
    auto dataset = Odd(5, [] { throw std::out_of_range("beyond"); }).map(Stack<>());
    return data_loader<SequentialSampler>(dataset, DataLoaderOptions(4).workers(workers), {.worker_kind = kind});
  }
};

TEST_F(DataLoaderErrors, NameBatchWorkerSampleAndType) {
  auto loader = faulty(1);
  auto at = loader->begin();
  expect_same((*at).target, at::arange(4));
  try {
    ++at;
    FAIL();
  } catch (const td::WorkerException& error) {
    EXPECT_THAT(error.what(), HasSubstr("batch 1 (worker 0): sample 5: std::out_of_range: beyond"));
  }
  ++at;
  expect_same((*at).target, at::arange(8, 12));
}

TEST_F(DataLoaderErrors, OfAThreadAreTheObjectThatWasThrown) {
  auto loader = faulty(2, WorkerKind::kThread);
  try {
    targets(*loader);
    FAIL();
  } catch (const td::WorkerException& error) {
    EXPECT_THROW(std::rethrow_exception(error.original_exception), std::out_of_range);
  }
}

TEST_F(DataLoaderErrors, WithoutWorkersComeAsTheyAre) {
  auto loader = faulty(0);
  EXPECT_THROW(targets(*loader), std::out_of_range);
}

TEST_F(DataLoaderErrors, OfTheFirstBatchLeaveTheOthers) {
  auto loader = data_loader<SequentialSampler>(Odd(0, [] { throw 1; }).map(Stack<>()), DataLoaderOptions(4).workers(1));
  auto at = loader->begin();
  EXPECT_THROW(*at, td::WorkerException);
  expect_same((*at).target, at::arange(4, 8));
}

TEST_F(DataLoaderErrors, OfATransformNameItsSample) {
  auto fail = td::transforms::Lambda<td::Example<>>([](td::Example<> example) {
    if (example.target.item<int>() == 6) throw std::domain_error("no six");
    return example;
  });
  auto loader = data_loader<SequentialSampler>(Numbers(8).map(fail).map(Stack<>()), DataLoaderOptions(4).workers(1));
  EXPECT_THAT([&] { targets(*loader); },
              ThrowsMessage<td::WorkerException>(HasSubstr("sample 6: std::domain_error: no six")));
}

TEST_F(DataLoaderErrors, OfACollationNameTheBatchsSamples) {
  auto fail = td::transforms::BatchLambda<std::vector<td::Example<>>, td::Example<>>(
      [](const std::vector<td::Example<>>& batch) -> td::Example<> {
        if (batch.size() < 10) throw std::length_error("too few");
        return batch[0];
      });
  auto loader = data_loader<SequentialSampler>(Numbers(19).map(fail), DataLoaderOptions(10).workers(1));
  EXPECT_THAT([&] { targets(*loader); },
              ThrowsMessage<td::WorkerException>(HasSubstr(
                  "batch 1 (worker 0): samples 10, 11, 12, 13, 14, 15, 16, 17, ... (9): std::length_error: too few")));
}

TEST_F(DataLoaderErrors, OfStackingNameTheSample) {
  auto forget = td::transforms::Lambda<td::Example<>>([](td::Example<> example) {
    return example.target.item<int>() == 6 ? td::Example<>({}, example.target) : example;
  });
  auto loader = data_loader<SequentialSampler>(Numbers(8).map(forget).map(Stack<>()), DataLoaderOptions(4).workers(1));
  EXPECT_THAT(
      [&] { targets(*loader); },
      ThrowsMessage<td::WorkerException>(HasSubstr("sample 6: stack: sample 2 of the batch is an undefined tensor")));
}

TEST_F(DataLoaderErrors, OfASamplerAreItsOwn) {
  for (const std::size_t workers : {0, 1}) {
    auto loader = data_loader(Numbers(8).map(Stack<>()), ListSampler({{0, 1}, {2, 3, 4}, {}, {5}}),
                              DataLoaderOptions(2).workers(workers));
    auto at = loader->begin();
    const auto first = infeed::testing::retried<IndexError>([&] { return (*at).target; });
    expect_same(first, at::arange(2));
    infeed::testing::retried<IndexError>([&] { return (++at)->target; });
    expect_same(at->target, at::full({1}, 5, at::kLong));
  }
}

TEST_F(DataLoaderErrors, OfASamplerComeInTheirPlaceWithoutWorkers) {
  auto loader = data_loader(Numbers(8).map(Stack<>()), ListSampler({{0, 1}, {2, 3, 4}}), DataLoaderOptions(2));
  auto at = loader->begin();
  expect_same((*at).target, at::arange(2));
  EXPECT_THAT([&] { ++at; }, ThrowsMessage<IndexError>(HasSubstr("3 indices for a batch; batch_size (2) must be")));
}

TEST_F(DataLoaderErrors, OfAStatefulDatasetComeInTheirPlace) {
  using Dataset = td::datasets::ChunkDataset<Chunks, SequentialSampler, SequentialSampler>;
  auto dataset = td::datasets::make_shared_dataset<Dataset>(Chunks(2), SequentialSampler(0), SequentialSampler(0),
                                                            td::datasets::ChunkDatasetOptions(1, 4));
  auto loader = data_loader(dataset.map(Stack<>()), DataLoaderOptions(4).workers(1));
  auto at = loader->begin();
  expect_same((*at).target, at::arange(4));
  ++at;
  expect_same((*at).target, at::arange(4, 8));
  EXPECT_THAT([&] { ++at; }, ThrowsMessage<td::WorkerException>(HasSubstr("chunk 2 is torn")));
  ++at;
  EXPECT_TRUE(at == loader->end());
}

TEST(DataLoaderTimeout, IsAnErrorAfterWhichTheBatchStillComes) {
  for (const WorkerKind kind : {WorkerKind::kFork, WorkerKind::kThread}) {
    const SharedGate gate;
    auto loader = data_loader<SequentialSampler>(Odd(0, [gate] { gate.wait(); }).map(Stack<>()),
                                                 DataLoaderOptions(4).workers(1).timeout(std::chrono::milliseconds(20)),
                                                 {.worker_kind = kind});
    auto at = loader->begin();
    EXPECT_THAT([&] { (void)*at; }, ThrowsMessage<TimeoutError>(HasSubstr("timeout")));
    gate.open();
    const auto first = infeed::testing::retried<TimeoutError>([&] { return (*at).target; });
    expect_same(first, at::arange(4));
  }
}

TEST(DataLoaderEnd, ComesWhileAWorkerIsStuckInItsDataset) {
  const SharedGate never;
  {
    auto loader =
        data_loader(Odd(3, [never] { never.wait(); }).map(Stack<>()), DataLoaderOptions(16).workers(2).max_jobs(2));
    auto at = loader->begin();
  }
  EXPECT_TRUE(infeed::testing::eventually([] { return children().empty(); }));
}

TEST(DataLoaderEnd, IsSaidToWhoAsksAfterJoin) {
  auto loader = data_loader(Numbers(4).map(Stack<>()), DataLoaderOptions(2).workers(1));
  auto at = loader->begin();
  loader->join();
  loader->join();
  EXPECT_THAT([&] { (void)loader->begin(); }, ThrowsMessage<ConfigError>(HasSubstr("make another one")));
  EXPECT_THROW(++at, ConfigError);
  EXPECT_THROW((void)loader->stats(), ConfigError);
}

TEST(DataLoaderDeaths, AKilledWorkersBatchIsMadeAgain) {
  const Once once;
  auto dataset = Odd(5, [once] {
                   if (once()) kill(getpid(), SIGKILL);
                 }).map(Stack<>());
  auto loader = data_loader<SequentialSampler>(dataset, DataLoaderOptions(4).workers(2));
  EXPECT_EQ(targets(*loader), values(at::arange(16)));
  EXPECT_EQ(loader->stats().restarts, 1);
}

TEST(DataLoaderDeaths, WithoutRestartsAreErrors) {
  auto dataset = Odd(5, [] { kill(getpid(), SIGKILL); }).map(Stack<>());
  auto loader = data_loader<SequentialSampler>(dataset, DataLoaderOptions(4).workers(1), {.max_restarts = 0});
  EXPECT_THROW(targets(*loader), WorkerError);
}

TEST(DataLoaderFork, WorksAfterTheConsumerUsedLibTorchsThreads) {
  at::set_num_threads(2);
  const auto heavy = [] {
    return at::ones({300, 300}).matmul(at::ones({300, 300})).tanh().sum() + at::ones({1 << 20}).sum();
  };
  const double before = heavy().item<double>();
  auto use = td::transforms::Lambda<td::Example<>>(
      [heavy](td::Example<> example) { return td::Example<>(heavy(), example.target); });
  auto loader = data_loader(Numbers(4).map(use).map(Stack<>()), DataLoaderOptions(2).workers(2));
  EXPECT_EQ(targets(*loader).size(), 4U);
  EXPECT_EQ(heavy().item<double>(), before);
}

TEST(DataLoaderFork, WorkersDrawThoughAnotherThreadHeldTheGeneratorAtTheFork) {
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  std::promise<void> held, done;
  std::thread trainer([&] {
    const std::lock_guard lock(generator.mutex());
    held.set_value();
    done.get_future().wait();
  });
  held.get_future().wait();
  auto noise = td::transforms::Lambda<td::Example<>>(
      [](td::Example<> example) { return td::Example<>(at::rand({2}), example.target); });
  auto loader = data_loader<SequentialSampler>(Numbers(4).map(noise).map(Stack<>()), DataLoaderOptions(2).workers(1));
  done.set_value();
  trainer.join();
  EXPECT_EQ(targets(*loader).size(), 4U);
}

TEST(DataLoaderFork, WorkersDrawTheSameWhateverTheirNumber) {
  auto noise = td::transforms::Lambda<td::Example<>>(
      [](td::Example<> example) { return td::Example<>(at::rand({2}), example.target); });
  std::vector<at::Tensor> draws[2];
  for (std::size_t workers = 1; workers <= 2; ++workers) {
    auto loader =
        data_loader<SequentialSampler>(Numbers(8).map(noise).map(Stack<>()), DataLoaderOptions(2).workers(workers));
    for (auto& batch : *loader) draws[workers - 1].push_back(batch.data);
  }
  expect_same(at::cat(draws[0]), at::cat(draws[1]));
  EXPECT_FALSE(at::equal(draws[0][0], draws[0][1]));
}

TEST(DataLoaderOptionsOfBoth, ThatCannotWorkAreNamed) {
  const auto make = [](const DataLoaderOptions& options, WorkerKind kind) {
    return data_loader(Numbers(4).map(Stack<>()), options, {.worker_kind = kind});
  };
  EXPECT_THROW(make(DataLoaderOptions(0), WorkerKind::kAuto), ConfigError);
  EXPECT_THROW(make(std::numeric_limits<std::size_t>::max(), WorkerKind::kAuto), ConfigError);
  EXPECT_THROW(make(DataLoaderOptions(1).workers(1).max_jobs(0), WorkerKind::kAuto), ConfigError);
  EXPECT_THROW(make(DataLoaderOptions(1).timeout(std::chrono::milliseconds(0)), WorkerKind::kAuto), ConfigError);
  EXPECT_THROW(make(DataLoaderOptions(1).workers(std::size_t{1} << 32), WorkerKind::kAuto), ConfigError);
  EXPECT_THROW(make(DataLoaderOptions(1).workers(1).max_jobs(std::size_t{1} << 32), WorkerKind::kAuto), ConfigError);
  EXPECT_THROW(make(DataLoaderOptions(1).workers(1), WorkerKind::kSpawn), ConfigError);
  EXPECT_THROW(data_loader(Countdown(1), DataLoaderOptions(1).workers(1), {.worker_kind = WorkerKind::kFork}),
               ConfigError);
}

}  // namespace
}  // namespace infeed::torch
