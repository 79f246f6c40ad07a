#include "infeed/doctor/doctor.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <utility>

#include "doctor/machine.h"
#include "infeed/base/error.h"

namespace infeed {
namespace {

constexpr std::uint64_t kMiB = 1 << 20;
constexpr std::uint64_t kGiB = 1 << 30;
constexpr double kStalled = 0.2;    // share of the last 10 s
constexpr int kOldestDriver = 580;  // of CUDA 13

double gib(std::uint64_t bytes) { return static_cast<double>(bytes) / kGiB; }

void judge_cpus(const MachineFacts& m, DoctorReport& report) {
  const double usable = m.limits.usable_cpus;
  if (usable + 0.01 < m.cpus_in_mask)
    report.add(
        Severity::kWarning, "cpu",
        fmt::format("the cgroup's quota is {:.1f} CPUs, {} are visible: programs that count those start too many "
                    "threads, and the kernel stops them all for the rest of each period.",
                    usable, m.cpus_in_mask),
        fmt::format("Count with {0:.0f}: num_workers of at most {0:.0f}, and OMP_NUM_THREADS={0:.0f}.",
                    std::max(1.0, std::floor(usable))));
  if (usable < 2)
    report.add(Severity::kWarning, "cpu",
               fmt::format("{:.1f} CPUs are usable: workers and trainer take turns.", usable),
               "num_workers=1, or 0 where a step runs on a device.");
  if (m.cpu_level == "portable")
    report.add(Severity::kWarning, "cpu", "the pixel kernels run without vector instructions.",
               m.cpu_level_max == "portable" ? "A processor with AVX2 or NEON decodes 2 to 4 times as fast."
                                             : "Unset INFEED_CPU: the processor can do more.");
  else if (m.cpu_level != m.cpu_level_max)
    report.add(
        Severity::kNote, "cpu",
        fmt::format("INFEED_CPU lowers the pixel kernels to {}; the processor has {}.", m.cpu_level, m.cpu_level_max));
  if (m.cpu_pressure > kStalled)
    report.add(Severity::kWarning, "cpu",
               fmt::format("tasks waited for a CPU {:.0f} % of the last 10 s: the machine has other load.",
                           m.cpu_pressure * 100),
               "Figures measured now are not to be trusted.");
}

void judge_memory(const MachineFacts& m, DoctorReport& report) {
  if (const auto left = m.limits.memory_left; left && *left < kGiB)
    report.add(*left < 256 * kMiB ? Severity::kError : Severity::kWarning, "memory",
               fmt::format("{} leaves {:.0f} MiB.", m.limits.memory_source, static_cast<double>(*left) / kMiB),
               "Lower batch_size or prefetch, set memory_limit, or raise the limit.");
  if (m.swap_used.value_or(0) > kGiB)
    report.add(Severity::kWarning, "memory", fmt::format("{:.1f} GiB are swapped out.", gib(*m.swap_used)),
               "Batches that are swapped stall the trainer: free memory first.");
  if (m.memory_pressure > kStalled)
    report.add(Severity::kWarning, "memory",
               fmt::format("tasks stalled for memory {:.0f} % of the last 10 s.", m.memory_pressure * 100),
               "Lower prefetch or num_workers, or raise the limit.");
  if (m.io_pressure > kStalled)
    report.add(Severity::kWarning, "storage",
               fmt::format("tasks waited for storage {:.0f} % of the last 10 s.", m.io_pressure * 100),
               "More workers overlap their reads; a local copy, or one that fits the page cache, needs none.");
  if (m.shm_bytes && *m.shm_bytes < kGiB)
    report.add(Severity::kNote, "shm",
               fmt::format(
                   "/dev/shm has {:.0f} MiB. infeed does not use it; torch's own DataLoader dies of a bus error there.",
                   static_cast<double>(*m.shm_bytes) / kMiB),
               "For torch's: docker run --shm-size=8g, or num_workers=0.");
  if (m.shmem_huge_pages == "never" || m.shmem_huge_pages == "deny")
    report.add(Severity::kNote, "huge_pages",
               fmt::format("shared memory gets no huge pages (shmem_enabled is {}): the first touch of a batch costs a "
                           "fault every 4 KiB.",
                           m.shmem_huge_pages),
               "As root: echo advise > /sys/kernel/mm/transparent_hugepage/shmem_enabled");
  if (m.overcommit == 2)
    report.add(Severity::kError, "memory",
               "vm.overcommit_memory is 2: address space counts as memory, and an arena reserves much of it.",
               "Set extent_bytes, or sysctl vm.overcommit_memory=0.");
}

void judge_limits(const MachineFacts& m, DoctorReport& report) {
  if (m.max_files && m.limits.descriptors_left < 256)
    report.add(m.limits.descriptors_left < 16 ? Severity::kError : Severity::kWarning, "limits",
               fmt::format("{} of {} descriptors are left; a loader takes one for each worker and eight more.",
                           m.limits.descriptors_left, *m.max_files),
               "ulimit -n 65536");
  else if (m.max_files && *m.max_files < 1024)
    report.add(Severity::kWarning, "limits", fmt::format("{} descriptors are allowed.", *m.max_files),
               "ulimit -n 65536");
  if (m.max_address_space)
    report.add(*m.max_address_space < 64 * kGiB ? Severity::kWarning : Severity::kNote, "limits",
               fmt::format("address space is limited to {:.1f} GiB (RLIMIT_AS): loaders get smaller arenas, and few "
                           "batches may be held.",
                           gib(*m.max_address_space)),
               "ulimit -v unlimited");
  if (m.max_file_size)
    report.add(Severity::kWarning, "limits",
               fmt::format("files are limited to {:.1f} GiB (RLIMIT_FSIZE); an arena is one.", gib(*m.max_file_size)),
               "ulimit -f unlimited");
  if (m.max_processes && *m.max_processes < 256)
    report.add(Severity::kWarning, "limits", fmt::format("{} processes and threads are allowed.", *m.max_processes),
               "ulimit -u 4096; in a container docker run --pids-limit 4096");
  if (m.max_locked && *m.max_locked < 64 * kMiB && !m.gpus.empty())
    report.add(
        Severity::kNote, "limits",
        fmt::format("{:.0f} KiB may be locked (RLIMIT_MEMLOCK); drivers that count page-locked memory against it "
                    "refuse batches.",
                    static_cast<double>(*m.max_locked) / 1024),
        "ulimit -l unlimited");
}

void judge_kernel(const MachineFacts& m, DoctorReport& report) {
  int major = 0, minor = 0;
  if (std::sscanf(m.kernel.c_str(), "%d.%d", &major, &minor) == 2 && (major < 5 || (major == 5 && minor < 4)))
    report.add(Severity::kError, "kernel", fmt::format("Linux {} has no pidfd; worker processes need 5.4.", m.kernel),
               "worker_kind=\"thread\" works.");
}

void judge_gpus(const MachineFacts& m, DoctorReport& report) {
  if (!m.gpus.empty() && m.gpu_driver.empty())
    report.add(Severity::kError, "gpu",
               fmt::format("{} is there, but no driver answers in /proc/driver/nvidia.", m.gpus[0]),
               "Load the driver, or start the container with its GPU support.");
  if (!m.gpu_driver.empty() && m.gpus.empty())
    report.add(Severity::kWarning, "gpu",
               fmt::format("driver {} is loaded, but no /dev/nvidia* can be seen.", m.gpu_driver),
               "docker run --gpus all");
  if (int major = 0; std::sscanf(m.gpu_driver.c_str(), "%d.", &major) == 1 && major < kOldestDriver)
    report.add(Severity::kWarning, "gpu",
               fmt::format("driver {} is older than CUDA 13 needs: devices \"cuda:N\" of infeed cannot be opened.",
                           m.gpu_driver),
               fmt::format("Install driver {} or newer; without device= infeed works as it is.", kOldestDriver));
  if (!m.gpus.empty() && m.cuda_plugin.empty())
    report.add(Severity::kNote, "gpu",
               "libinfeed_cuda.so was not found: batches are copied by the framework, not by a Stager.",
               "Build it (cmake --preset cuda), or name its folder in INFEED_PLUGIN_PATH.");
}

State facts_of(const MachineFacts& m) {
  State facts;
  const auto set = [&facts](const char* name, const std::optional<std::uint64_t>& value) {
    if (value) facts.set(name, *value);
  };
  facts.set("infeed", INFEED_VERSION);
  facts.set("kernel", m.kernel);
  facts.set("cpus_visible", m.cpus_in_mask);
  facts.set("cpus_usable", m.limits.usable_cpus);
  facts.set("cpu_level", m.cpu_level);
  set("memory_total", m.memory_total);
  set("memory_left", m.limits.memory_left);
  facts.set("memory_source", m.limits.memory_source);
  set("page_cache", m.page_cache);
  set("shm_bytes", m.shm_bytes);
  set("shm_free", m.shm_free);
  facts.set("descriptors_left", m.limits.descriptors_left);
  set("max_files", m.max_files);
  set("max_locked", m.max_locked);
  set("max_address_space", m.max_address_space);
  facts.set("huge_pages", m.huge_pages);
  facts.set("shmem_huge_pages", m.shmem_huge_pages);
  facts.set("in_container", m.in_container);
  facts.set("gpus", static_cast<int>(m.gpus.size()));
  facts.set("gpu_driver", m.gpu_driver);
  facts.set("cuda_plugin", m.cuda_plugin);
  return facts;
}

}  // namespace

const char* to_string(Severity severity) noexcept {
  switch (severity) {
    case Severity::kNote: return "note";
    case Severity::kWarning: return "warning";
    case Severity::kError: return "error";
  }
  return "note";
}

void DoctorReport::add(Severity severity, std::string topic, std::string what, std::string advice) {
  diagnoses.push_back({severity, std::move(topic), std::move(what), std::move(advice)});
}

int DoctorReport::exit_code() const noexcept {
  Severity worst = Severity::kNote;
  for (const Diagnosis& diagnosis : diagnoses) worst = std::max(worst, diagnosis.severity);
  return static_cast<int>(worst);
}

std::string DoctorReport::str() const {
  std::string text;
  const auto number = [this](const char* name) { return facts.contains(name) ? gib(facts.get_uint(name)) : 0.0; };
  if (facts.contains("cpus_usable"))
    text = fmt::format(
        "infeed {}, Linux {}; {:.1f} of {} CPUs ({}), {:.1f} GiB of memory left of {:.1f}, {:.1f} GiB in the page "
        "cache; {} GPUs{}\n",
        facts.get_string("infeed"), facts.get_string("kernel"), facts.get_double("cpus_usable"),
        facts.get_int("cpus_visible"), facts.get_string("cpu_level"), number("memory_left"), number("memory_total"),
        number("page_cache"), facts.get_int("gpus"),
        facts.get_string("gpu_driver").empty() ? "" : ", driver " + facts.get_string("gpu_driver"));
  for (const Severity severity : {Severity::kError, Severity::kWarning, Severity::kNote}) {
    for (const Diagnosis& d : diagnoses) {
      if (d.severity != severity) continue;
      text += fmt::format("{:<8} {:<10} {}\n", to_string(severity), d.topic, d.what);
      if (!d.advice.empty()) text += fmt::format("{:20}{}\n", "", d.advice);
    }
  }
  return diagnoses.empty() ? text + "nothing found\n" : text;
}

State DoctorReport::to_state() const {
  std::vector<State> rows;
  for (const Diagnosis& d : diagnoses) {
    State& row = rows.emplace_back();
    row.set("severity", to_string(d.severity));
    row.set("topic", d.topic);
    row.set("what", d.what);
    row.set("advice", d.advice);
  }
  State state;
  state.set("diagnoses", rows);
  state.set("facts", facts);
  state.set("exit_code", exit_code());
  return state;
}

DoctorReport examine_machine(const DoctorOptions& options) {
  std::error_code none;
  if (!options.root.empty() && !std::filesystem::is_directory(options.root, none))
    throw DataError(fmt::format("{} is no folder that holds a machine's files.", options.root));
  const MachineFacts machine = look_at_machine(options.root);
  DoctorReport report;
  report.facts = facts_of(machine);
  judge_cpus(machine, report);
  judge_memory(machine, report);
  judge_limits(machine, report);
  judge_kernel(machine, report);
  judge_gpus(machine, report);
  return report;
}

void examine_loader(const LoaderStats& stats, DoctorReport& report) {
  const Verdict verdict = stats.verdict();
  const bool costs = verdict.bound == Bound::kInput || verdict.bound == Bound::kTransfer ||
                     verdict.bound == Bound::kBursty || verdict.cause == Cause::kTrainerStarved;
  const Severity severity = verdict.cause == Cause::kStoppedWorker ? Severity::kError
                            : costs                                ? Severity::kWarning
                                                                   : Severity::kNote;
  report.add(severity, "loader", verdict.finding, verdict.advice);
  if (stats.restarts > 0)
    report.add(Severity::kWarning, "loader", fmt::format("{} workers died and were replaced.", stats.restarts),
               "The log names signal and sample; SIGKILL is most often the memory limit.");
  if (stats.skipped + stats.replaced > 0)
    report.add(Severity::kWarning, "loader",
               fmt::format("{} samples could not be read: {} skipped, {} replaced.", stats.skipped + stats.replaced,
                           stats.skipped, stats.replaced),
               "stats().faulty lists them.");
  if (stats.private_copies > 0)
    report.add(Severity::kWarning, "loader",
               fmt::format("{} batches were copied, since {} are held.", stats.private_copies, stats.batches_held),
               "Drop batches sooner.");
  if (stats.usable_cpus > 0 && stats.num_workers * stats.threads_per_worker > 2 * stats.usable_cpus &&
      stats.on_cpu_share > 0.5)
    report.add(Severity::kWarning, "loader",
               fmt::format("{} worker threads that compute on {:.1f} CPUs.",
                           stats.num_workers * stats.threads_per_worker, stats.usable_cpus),
               fmt::format("num_workers={:.0f}", std::max(1.0, std::floor(stats.usable_cpus))));
}

}  // namespace infeed
