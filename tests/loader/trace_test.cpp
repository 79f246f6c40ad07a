// The trace of real loaders, checked against the Trace Event Format.

#include "infeed/loader/trace.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "infeed/base/error.h"
#include "infeed/dataset/synthetic.h"
#include "infeed/device/simulated.h"
#include "infeed/loader/loader.h"
#include "infeed/loader/stager.h"
#include "ring/ring.h"
#include "support/temp_folder.h"

namespace infeed {
namespace {

using nlohmann::json;

const SyntheticDataset& dataset() {
  static const SyntheticDataset made(64, Schema({{"x", DType::kUInt8, {100}}}));
  return made;
}

LoaderOptions options(WorkerKind kind, int workers = 2) {
  return {.batch_size = 8, .num_workers = workers, .worker_kind = kind};
}

int drain(Loader& loader) {
  int batches = 0;
  while (loader.next()) ++batches;
  return batches;
}

std::vector<json> events_of(const json& trace, const std::string& phase, const std::string& name = "") {
  std::vector<json> found;
  for (const json& event : trace.at("traceEvents")) {
    if (event.at("ph") == phase && (name.empty() || event.at("name") == name)) found.push_back(event);
  }
  return found;
}

/// What every reader of the format demands.
void expect_well_formed(const json& trace) {
  for (const json& event : trace.at("traceEvents")) {
    const std::string phase = event.at("ph");
    ASSERT_TRUE(std::set<std::string>({"X", "M", "s", "f"}).contains(phase)) << event;
    ASSERT_TRUE(event.at("name").is_string() && event.at("cat").is_string()) << event;
    ASSERT_TRUE(event.at("pid").is_number_integer() && event.at("tid").is_number_integer()) << event;
    ASSERT_TRUE(phase == "M" || event.at("ts").is_number()) << event;
    ASSERT_TRUE(phase != "X" || event.at("dur").get<double>() >= 0) << event;
    ASSERT_TRUE((phase != "s" && phase != "f") || event.at("id").is_number_integer()) << event;
  }
}

/// Spans of one track lie within one another, or apart.
void expect_nested(const json& trace) {
  std::map<std::pair<int, int>, std::vector<std::pair<double, double>>> tracks;
  for (const json& event : events_of(trace, "X"))
    tracks[{event.at("pid").get<int>(), event.at("tid").get<int>()}].emplace_back(event.at("ts").get<double>(),
                                                                                  -event.at("dur").get<double>());
  constexpr double kRounding = 0.0011;  // us
  for (auto& [track, spans] : tracks) {
    std::sort(spans.begin(), spans.end());
    std::vector<double> ends;
    for (const auto& [begin, minus_length] : spans) {
      while (!ends.empty() && ends.back() <= begin + kRounding) ends.pop_back();
      ASSERT_TRUE(ends.empty() || begin - minus_length <= ends.back() + kRounding) << "track " << track.second;
      ends.push_back(begin - minus_length);
    }
  }
}

/// Each arrow has one begin and one end, later, both on a span.
void expect_arrows(const json& trace, std::size_t at_least) {
  std::map<std::int64_t, double> begins;
  for (const json& event : events_of(trace, "s")) ASSERT_TRUE(begins.emplace(event.at("id"), event.at("ts")).second);
  const auto ends = events_of(trace, "f");
  EXPECT_GE(ends.size(), at_least);
  EXPECT_EQ(ends.size(), begins.size());
  for (const json& event : ends) {
    EXPECT_EQ(event.at("bp"), "e");
    EXPECT_LE(begins.at(event.at("id")), event.at("ts").get<double>());
  }
}

class TraceTest : public ::testing::TestWithParam<WorkerKind> {};

TEST_P(TraceTest, ShowsEveryRunAndWhoTookIt) {
  const Trace trace;
  Loader loader(dataset(), options(GetParam(), GetParam() == WorkerKind::kInline ? 0 : 2));
  ASSERT_EQ(drain(loader), 8);
  const json events = json::parse(trace.json());
  expect_well_formed(events);
  expect_nested(events);
  expect_arrows(events, 8);
  int rows = 0;
  for (const json& run : events_of(events, "X", "run")) rows += run.at("args").at("rows").get<int>();
  EXPECT_EQ(rows, 64);
  EXPECT_EQ(events_of(events, "X", "next").size(), 9u);  // the last one found the end
  EXPECT_EQ(events_of(events, "X", "trainer").size(), 8u);
}

TEST_P(TraceTest, NamesProcessesAndThreads) {
  const Trace trace;
  Loader loader(dataset(), options(GetParam(), GetParam() == WorkerKind::kInline ? 0 : 2));
  ASSERT_EQ(drain(loader), 8);
  const json events = json::parse(trace.json());
  std::set<std::pair<int, int>> named, used;
  for (const json& event : events_of(events, "M", "thread_name"))
    named.emplace(event.at("pid").get<int>(), event.at("tid").get<int>());
  for (const json& event : events_of(events, "X")) used.emplace(event.at("pid").get<int>(), event.at("tid").get<int>());
  EXPECT_EQ(named, used);
  EXPECT_FALSE(events_of(events, "M", "process_name").empty());
}

INSTANTIATE_TEST_SUITE_P(AllKinds, TraceTest,
                         ::testing::Values(WorkerKind::kInline, WorkerKind::kThread, WorkerKind::kFork,
                                           WorkerKind::kSpawn),
                         [](const auto& kind) { return std::string(to_string(kind.param)); });

TEST(TraceFileTest, IsWrittenAtTheEnd) {
  const testing::TempFolder folder;
  {
    const Trace trace(folder.at("%p.json"));
    Loader loader(dataset(), options(WorkerKind::kThread));
    drain(loader);
  }
  std::ifstream file(folder.at(std::to_string(getpid()) + ".json"));
  expect_well_formed(json::parse(file));
  EXPECT_FALSE(Trace::running());
}

TEST(TraceFileTest, SaysWhereItCannotBeWritten) {
  const Trace trace;
  EXPECT_THROW(trace.write("/nowhere/t.json"), DataError);
}

TEST(TraceFileTest, SaysSoBeforeItBegins) {
  EXPECT_THROW(Trace("/nowhere/t.json"), DataError);
  EXPECT_FALSE(Trace::running());
}

TEST(TraceFileTest, IsJsonWhateverThreadsAndSpansAreNamed) {
  const Trace trace;
  Trace::span("cut \xc3", 0, 1);
  EXPECT_TRUE(json::accept(trace.json()));
}

TEST(TraceLifeTest, OnlyOneRuns) {
  const Trace trace;
  EXPECT_THROW(Trace(), ConfigError);
}

TEST(TraceLifeTest, BeginsAndEndsInTheMiddleOfAnEpoch) {
  Loader loader(dataset(), options(WorkerKind::kFork));
  ASSERT_TRUE(loader.next());
  {
    const Trace trace;
    for (int i = 0; i < 3; ++i) ASSERT_TRUE(loader.next());
    const json events = json::parse(trace.json());
    expect_well_formed(events);
    EXPECT_EQ(events_of(events, "X", "next").size(), 3u);
  }
  EXPECT_EQ(drain(loader), 4);
}

TEST(TraceLifeTest, KeepsWhatALoaderDidThatIsGone) {
  const Trace trace;
  drain(*std::make_unique<Loader>(dataset(), options(WorkerKind::kFork)));
  EXPECT_EQ(events_of(json::parse(trace.json()), "X", "next").size(), 9u);
}

TEST(TraceLifeTest, IsNotTheForkedChilds) {
  const Trace trace;
  const pid_t child = fork();
  if (child == 0) {
    Loader loader(dataset(), options(WorkerKind::kInline, 0));
    _exit(drain(loader) == 8 && !Trace::running() ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(Trace::running());
}

TEST(TraceLifeTest, HoldsSpansOfTheUser) {
  const Trace trace;
  Trace::span("forward \"a\"\n", 5, 7);
  EXPECT_EQ(events_of(json::parse(trace.json()), "X", "forward \"a\"\n").size(), 1u);
}

TEST(TraceLifeTest, ShowsCopiesAndTheTrainerBehindAStager) {
  const Trace trace;
  Loader loader(dataset(), options(WorkerKind::kThread));
  Stager stager(loader, std::make_shared<SimulatedDevice>());
  int batches = 0;
  while (stager.next()) ++batches;
  stager.compute_stream().synchronize();
  const json events = json::parse(trace.json());
  expect_well_formed(events);
  EXPECT_EQ(batches, 8);
  EXPECT_EQ(events_of(events, "X", "trainer").size(), 8u);
  EXPECT_GE(events_of(events, "X", "copy").size(), 7u);
}

/// The records of one claimant.
class TraceRingTest : public ::testing::Test {
 protected:
  TraceRingTest() : memory(Ring::bytes(kConfig) / 128 + 1), ring(Ring::format(memory[0].bytes, kConfig)) {}
  void record(std::uint64_t from, std::uint64_t to) {
    for (std::uint64_t i = from; i < to; ++i) ring.trace_run(0, {.begin_ns = i, .rows = 3, .thread = 9});
  }
  static constexpr RingConfig kConfig{};
  struct alignas(128) Block {
    std::byte bytes[128];
  };
  std::vector<Block> memory;
  Ring ring;
  std::uint64_t seen = 0;
  std::vector<RunTrace> runs;
};

TEST_F(TraceRingTest, GivesEachRecordOnce) {
  record(0, 5);
  EXPECT_EQ(ring.read_trace(0, seen, runs), 0u);
  record(5, 7);
  EXPECT_EQ(ring.read_trace(0, seen, runs), 0u);
  ASSERT_EQ(runs.size(), 7u);
  EXPECT_EQ(runs[6].begin_ns, 6u);
  EXPECT_EQ(runs[6].rows, 3u);
  EXPECT_EQ(runs[6].thread, 9u);
}

TEST_F(TraceRingTest, CountsWhatWasOverwritten) {
  record(0, kTraceRecords + 10);
  EXPECT_EQ(ring.read_trace(0, seen, runs), 10u);
  ASSERT_EQ(runs.size(), static_cast<std::size_t>(kTraceRecords));
  EXPECT_EQ(runs.front().begin_ns, 10u);
}

}  // namespace
}  // namespace infeed
