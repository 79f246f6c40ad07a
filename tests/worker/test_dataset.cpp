#include "worker/test_dataset.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <thread>

#include "infeed/base/error.h"

namespace infeed::testing {
namespace {

Schema schema_of(const Behaviour& behaviour) {
  return Schema{{"x", DType::kInt64, behaviour.variable ? Shape{-1} : Shape{4}}};
}

void act(const Behaviour& behaviour, std::int64_t index) {
  if (behaviour.sleep_us > 0) std::this_thread::sleep_for(std::chrono::microseconds(behaviour.sleep_us));
  if (index == behaviour.exits_at) ::_exit(0);
  if (index == behaviour.signals_at) ::raise(behaviour.signal);
  while (index == behaviour.hangs_at) ::pause();
  if (std::find(behaviour.raises.begin(), behaviour.raises.end(), index) != behaviour.raises.end())
    throw DataError(fmt::format("sample {} is bad", index));
}

void write(const Behaviour& behaviour, std::int64_t index, Row& row) {
  const std::int64_t count = behaviour.variable ? index % 5 + 1 : 4;
  if (behaviour.variable) row.resize(0, Shape{count});
  for (std::int64_t i = 0; i < count; ++i) row[0].as<std::int64_t>()[i] = index * 10 + i;
}

class TestReader final : public StreamReader {
 public:
  TestReader(const Behaviour& behaviour, std::int64_t shard, std::int64_t num_shards)
      : behaviour_(behaviour), next_(shard), step_(num_shards) {}

  bool next(Row& row) override {
    if (next_ >= behaviour_.size) return false;
    const std::int64_t index = next_;
    next_ += step_;
    act(behaviour_, index);
    write(behaviour_, index, row);
    return true;
  }

  std::int64_t skip(std::int64_t count) override {
    std::int64_t skipped = 0;
    for (; skipped < count && next_ < behaviour_.size; ++skipped) next_ += step_;
    return skipped;
  }

 private:
  const Behaviour& behaviour_;
  std::int64_t next_, step_;
};

}  // namespace

State Behaviour::to_state() const {
  State state;
  state.set("size", size);
  state.set("variable", variable);
  state.set("raises", raises);
  state.set("exits_at", exits_at);
  state.set("hangs_at", hangs_at);
  state.set("signals_at", signals_at);
  state.set("signal", signal);
  state.set("sleep_us", sleep_us);
  state.set("broken", broken);
  return state;
}

Behaviour Behaviour::from_state(const State& state) {
  return {.size = state.get_int("size"),
          .variable = state.get_bool("variable"),
          .raises = state.get_ints("raises"),
          .exits_at = state.get_int("exits_at"),
          .hangs_at = state.get_int("hangs_at"),
          .signals_at = state.get_int("signals_at"),
          .signal = static_cast<int>(state.get_int("signal")),
          .sleep_us = state.get_int("sleep_us"),
          .broken = state.get_bool("broken")};
}

TestDataset::TestDataset(Behaviour behaviour) : behaviour_(std::move(behaviour)), schema_(schema_of(behaviour_)) {}

void TestDataset::read(Row& row) const {
  row.context().times->read_ns += 1000;
  act(behaviour_, row.index());
  write(behaviour_, row.index(), row);
}

std::optional<DatasetSpec> TestDataset::spec() const {
  return DatasetSpec{.name = "test", .params = behaviour_.to_state(), .plugin = {}};
}

TestStream::TestStream(Behaviour behaviour) : behaviour_(std::move(behaviour)), schema_(schema_of(behaviour_)) {}

std::unique_ptr<StreamReader> TestStream::open(std::uint64_t /*epoch*/, std::int64_t shard,
                                               std::int64_t num_shards) const {
  return std::make_unique<TestReader>(behaviour_, shard, num_shards);
}

std::optional<DatasetSpec> TestStream::spec() const {
  return DatasetSpec{.name = "test_stream", .params = behaviour_.to_state(), .plugin = {}};
}

void log_init(const WorkerInfo& info) {
  const int file = ::open(std::getenv("INFEED_TEST_LOG"), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
  const std::string line = fmt::format("{} {} {} {}\n", info.id, info.num_workers, info.seed, ::getpid());
  [[maybe_unused]] const auto written = ::write(file, line.data(), line.size());
  ::close(file);
}

void failing_init(const WorkerInfo& info) { throw ConfigError(fmt::format("worker {} has no licence", info.id)); }

Registry test_registry() {
  Registry registry;
  registry.add("test", [](const State& params) -> std::unique_ptr<Dataset> {
    Behaviour behaviour = Behaviour::from_state(params);
    if (behaviour.broken) throw DataError("the archive is not there");
    return std::make_unique<TestDataset>(std::move(behaviour));
  });
  registry.add_stream("test_stream", [](const State& params) -> std::unique_ptr<Stream> {
    return std::make_unique<TestStream>(Behaviour::from_state(params));
  });
  const auto init = [](void (*run)(const WorkerInfo&)) {
    return [run](int id, int num_workers, std::uint64_t seed) {
      run(WorkerInfo{.id = id, .num_workers = num_workers, .seed = seed});
    };
  };
  registry.add_worker_init("log", init(log_init));
  registry.add_worker_init("fail", init(failing_init));
  return registry;
}

}  // namespace infeed::testing
