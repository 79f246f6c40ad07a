#include "worker/boot.h"

#include <fmt/format.h>

#include "infeed/base/error.h"
#include "infeed/base/state.h"
#include "ring/layout.h"

namespace infeed {
namespace {

constexpr const char* kFds = "fds";

// Both sides must be of one build line: what crosses has no compatibility to keep.
std::string protocol() { return fmt::format("infeed {} ring {}", INFEED_VERSION, kRingVersion); }

State geometry_state(const ArenaOptions& geometry) {
  State state;
  state.set("control_bytes", static_cast<std::uint64_t>(geometry.control_bytes));
  state.set("extent_bytes", static_cast<std::uint64_t>(geometry.extent_bytes));
  state.set("num_extents", geometry.num_extents);
  state.set("min_extents", geometry.min_extents);
  return state;
}

int get_number(const State& state, const char* key) { return static_cast<int>(state.get_int(key)); }

ArenaOptions geometry_of(const State& state) {
  return {.control_bytes = state.get_uint("control_bytes"),
          .extent_bytes = state.get_uint("extent_bytes"),
          .num_extents = get_number(state, "num_extents"),
          .min_extents = get_number(state, "min_extents")};
}

// Replaces the consumer's descriptors in `params` by those of the worker.
std::vector<int> renumber_fds(State& params) {
  std::vector<int> fds;
  if (!params.contains(kFds)) return fds;
  std::vector<std::int64_t> numbers;
  for (const std::int64_t fd : params.get_ints(kFds)) {
    numbers.push_back(kFirstDatasetFd + static_cast<std::int64_t>(fds.size()));
    fds.push_back(static_cast<int>(fd));
  }
  params.set(kFds, numbers);
  return fds;
}

void set_collate(Boot& boot, const Collate& collate) {
  boot.has_collate = true;
  boot.collate_name = collate.name();
  boot.collate_params = collate.params();
  if (boot.collate_name.empty())
    throw ConfigError(
        "worker_kind kSpawn: the collate has no name() by which another process could make it. Use pad or "
        "ragged, or worker_kind kFork or kThread.");
}

}  // namespace

std::string Boot::to_json() const {
  State state;
  state.set("protocol", protocol());
  state.set("geometry", geometry_state(geometry));
  state.set("is_stream", is_stream);
  state.set("dataset", spec.name);
  state.set("params", spec.params);
  state.set("plugin", spec.plugin);
  state.set("has_collate", has_collate);
  state.set("collate", collate_name);
  state.set("collate_params", collate_params);
  state.set("seed", seed);
  state.set("max_rows", max_rows);
  state.set("on_error", static_cast<int>(on_error));
  state.set("replace_tries", replace_tries);
  state.set("threads", threads);
  state.set("spin_us", spin_us);
  state.set("cpu_affinity", std::vector<std::int64_t>(cpu_affinity.begin(), cpu_affinity.end()));
  state.set("worker_init", worker_init_name);
  return state.to_json();
}

Boot Boot::from_json(const std::string& json) {
  const State state = State::from_json(json);
  if (const std::string other = state.get_string("protocol"); other != protocol())
    throw ConfigError(
        fmt::format("infeed-worker is of \"{}\", the library that started it of \"{}\". Install both from "
                    "one build, or set worker_executable or INFEED_WORKER to the right one.",
                    protocol(), other));
  Boot boot;
  boot.geometry = geometry_of(state.get_state("geometry"));
  boot.is_stream = state.get_bool("is_stream");
  boot.spec = {state.get_string("dataset"), state.get_state("params"), state.get_string("plugin")};
  boot.has_collate = state.get_bool("has_collate");
  boot.collate_name = state.get_string("collate");
  boot.collate_params = state.get_state("collate_params");
  boot.seed = state.get_uint("seed");
  boot.max_rows = get_number(state, "max_rows");
  boot.on_error = static_cast<FaultPolicy>(state.get_int("on_error"));
  boot.replace_tries = get_number(state, "replace_tries");
  boot.threads = get_number(state, "threads");
  boot.spin_us = get_number(state, "spin_us");
  for (const std::int64_t cpu : state.get_ints("cpu_affinity")) boot.cpu_affinity.push_back(static_cast<int>(cpu));
  boot.worker_init_name = state.get_string("worker_init");
  return boot;
}

Boot make_boot(const PoolOptions& options, const Arena& arena, const WorkPlan& plan, std::vector<int>& dataset_fds) {
  if (options.worker_init)
    throw ConfigError(
        "worker_kind kSpawn cannot run a worker_init function of this process. Register it in the "
        "dataset's plugin and name it in worker_init_name, or use worker_kind kFork or kThread.");
  std::optional<DatasetSpec> spec = plan.stream != nullptr ? plan.stream->spec() : plan.dataset->spec();
  if (!spec)
    throw ConfigError(
        "worker_kind kSpawn: the dataset's spec() is empty, so no other process can make it. Override "
        "spec() and register the name (a plugin), or use worker_kind kFork or kThread.");
  dataset_fds = renumber_fds(spec->params);
  Boot boot{.geometry = arena.geometry(),
            .is_stream = plan.stream != nullptr,
            .spec = std::move(*spec),
            .seed = plan.seed,
            .max_rows = plan.max_rows,
            .on_error = plan.on_error,
            .replace_tries = plan.replace_tries,
            .threads = options.threads_per_worker,
            .spin_us = options.spin_us,
            .cpu_affinity = options.cpu_affinity,
            .worker_init_name = options.worker_init_name};
  if (plan.collate != nullptr) set_collate(boot, *plan.collate);
  return boot;
}

}  // namespace infeed
