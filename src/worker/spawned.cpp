#include "worker/spawned.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <exception>

#include "infeed/base/error.h"
#include "infeed/base/log.h"
#include "worker/boot.h"
#include "worker/fault.h"
#include "worker/parent_guard.h"
#include "worker/worker.h"

namespace infeed {
namespace {

constexpr int kUsageExit = 2;

std::string read_boot() {
  struct stat info {};
  if (::fstat(kBootFd, &info) != 0) throw ConfigError("nothing to start from. infeed-worker is started by libinfeed.");
  std::string json(static_cast<std::size_t>(info.st_size), '\0');
  std::size_t done = 0;
  while (done < json.size()) {
    const ssize_t n = ::pread(kBootFd, json.data() + done, json.size() - done, static_cast<off_t>(done));
    if (n == 0 || (n < 0 && errno != EINTR)) throw ConfigError(fmt::format("the boot file ends at byte {}", done));
    if (n > 0) done += static_cast<std::size_t>(n);
  }
  return json;
}

void close_others(const Boot& boot) {
  ::close(kBootFd);
  const std::size_t num_fds = boot.spec.params.contains("fds") ? boot.spec.params.get_ints("fds").size() : 0;
  ::syscall(SYS_close_range, kFirstDatasetFd + static_cast<unsigned>(num_fds), ~0U, 0U);
}

WorkerSeat seat_of(const Boot& boot, int worker_id, int num_workers) {
  const auto& cpus = boot.cpu_affinity;
  return {.info = {.id = worker_id, .num_workers = num_workers, .seed = boot.seed},
          .threads = boot.threads,
          .spin_us = boot.spin_us,
          .ready_eventfd = kReadyFd,
          .cpu = cpus.empty() ? -1 : cpus[static_cast<std::size_t>(worker_id) % cpus.size()]};
}

// What the consumer holds as objects, made again here.
struct Made {
  std::unique_ptr<Dataset> dataset;
  std::unique_ptr<Stream> stream;
  std::unique_ptr<Collate> collate;
  std::optional<BatchLayout> layout;
  std::function<void(const WorkerInfo&)> init;

  Made(const Boot& boot, const Registry& registry);
  [[nodiscard]] WorkPlan plan(const Boot& boot) const;
};

Made::Made(const Boot& boot, const Registry& registry) {
  if (boot.is_stream)
    stream = registry.make_stream(boot.spec);
  else
    dataset = registry.make(boot.spec);
  if (boot.has_collate)
    collate = make_collate(boot.collate_name, boot.collate_params);
  else
    layout.emplace(stream ? stream->schema() : dataset->schema(), boot.max_rows);
  if (boot.worker_init_name.empty()) return;
  const auto named = registry.worker_init(boot.worker_init_name, boot.spec.plugin);
  init = [named](const WorkerInfo& info) { named(info.id, info.num_workers, info.seed); };
}

WorkPlan Made::plan(const Boot& boot) const {
  return {.dataset = dataset.get(),
          .stream = stream.get(),
          .collate = collate.get(),
          .layout = layout ? &*layout : nullptr,
          .seed = boot.seed,
          .max_rows = boot.max_rows,
          .on_error = boot.on_error,
          .replace_tries = boot.replace_tries};
}

int work(const Boot& boot, WorkerSeat seat, const Registry& registry) {
  const Arena arena = Arena::attach(Memfd::adopt(kArenaFd), boot.geometry);
  Ring ring = Ring::attach(arena.control(), boot.geometry.control_bytes);
  ring.add_stats(seat.first_claimant(), {.pid = ::getpid()});  // attached; to make the dataset may take long
  try {
    const Made made(boot, registry);
    seat.init = &made.init;
    ::_exit(run_worker(seat, ring, arena, made.plan(boot)));  // intentional: no destructors, as after a fork
  } catch (...) {
    return report_failed_start(seat, ring, std::current_exception());
  }
}

}  // namespace

int spawned_worker_main(int argc, char** argv, const Registry& registry) {
  if (argc != 4) {
    std::fputs(
        "infeed-worker fills batches for a loader with worker_kind kSpawn. libinfeed starts it; alone it does "
        "nothing.\n",
        stderr);
    return kUsageExit;
  }
  guard_against_orphanage(static_cast<pid_t>(std::strtol(argv[3], nullptr, 10)));
  try {
    const Boot boot = Boot::from_json(read_boot());
    close_others(boot);
    const auto number = [&](int i) { return static_cast<int>(std::strtol(argv[i], nullptr, 10)); };
    ::_exit(work(boot, seat_of(boot, number(1), number(2)), registry));
  } catch (...) {  // without a ring to report to
    log(LogLevel::kError, fmt::format("infeed-worker: {}", capture_fault(std::current_exception()).text));
    ::_exit(kExitStartFailed);
  }
}

}  // namespace infeed
