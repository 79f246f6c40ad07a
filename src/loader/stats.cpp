#include "infeed/loader/stats.h"

#include <fmt/format.h>

// One list of the fields that a file holds, for both ways.

namespace infeed {
namespace {

struct Writer {
  State& state;
  template <typename T>
  void operator()(const char* name, const T& value) const {
    state.set(name, value);
  }
};

struct Reader {
  const State& state;
  void operator()(const char* name, double& value) const {
    if (state.contains(name)) value = state.get_double(name);
  }
  void operator()(const char* name, std::uint64_t& value) const {
    if (state.contains(name)) value = state.get_uint(name);
  }
  void operator()(const char* name, std::int64_t& value) const {
    if (state.contains(name)) value = state.get_int(name);
  }
  void operator()(const char* name, int& value) const {
    if (state.contains(name)) value = static_cast<int>(state.get_int(name));
  }
  void operator()(const char* name, bool& value) const {
    if (state.contains(name)) value = state.get_bool(name);
  }
};

template <typename Stats, typename Visit>
void visit_fields(Stats& s, const Visit& visit) {
  visit("batches", s.batches);
  visit("samples", s.samples);
  visit("elapsed_s", s.elapsed_s);
  visit("samples_per_s", s.samples_per_s);
  visit("first_batch_ms", s.first_batch_ms);
  visit("wait_s", s.wait_s);
  visit("sampler_s", s.sampler_s);
  visit("hand_over_s", s.hand_over_s);
  visit("trainer_s", s.trainer_s);
  visit("starved_share", s.starved_share);
  visit("waits", s.waits);
  visit("longest_wait_ms", s.longest_wait_ms);
  visit("worst_tenth_share", s.worst_tenth_share);
  visit("blocked_share", s.blocked_share);
  visit("read_us", s.read_us);
  visit("decode_us", s.decode_us);
  visit("transform_us", s.transform_us);
  visit("collate_us", s.collate_us);
  visit("other_us", s.other_us);
  visit("bytes_read", s.bytes_read);
  visit("on_cpu_share", s.on_cpu_share);
  visit("cpu_queue_share", s.cpu_queue_share);
  visit("trainer_cpu_queue_share", s.trainer_cpu_queue_share);
  visit("num_workers", s.num_workers);
  visit("threads_per_worker", s.threads_per_worker);
  visit("prefetch", s.prefetch);
  visit("prefetch_factor", s.prefetch_factor);
  visit("usable_cpus", s.usable_cpus);
  visit("memory_limit", s.memory_limit);
  visit("short_of_memory_share", s.short_of_memory_share);
  visit("pss_bytes", s.pss_bytes);
  visit("arena_bytes", s.arena_bytes);
  visit("batches_held", s.batches_held);
  visit("private_copies", s.private_copies);
  visit("restarts", s.restarts);
  visit("skipped", s.skipped);
  visit("replaced", s.replaced);
}

template <typename Staging, typename Visit>
void visit_staging(Staging& s, const Visit& visit) {
  visit("batches", s.batches);
  visit("bytes", s.bytes);
  visit("elapsed_s", s.elapsed_s);
  visit("copy_s", s.copy_s);
  visit("copy_bytes_per_s", s.copy_bytes_per_s);
  visit("copy_share", s.copy_share);
  visit("starved_share", s.starved_share);
  visit("batches_held", s.batches_held);
  visit("registrations", s.registrations);
  visit("registered_bytes", s.registered_bytes);
  visit("device_bytes", s.device_bytes);
}

template <typename Worker, typename Visit>
void visit_worker(Worker& w, const Visit& visit) {
  visit("id", w.id);
  visit("pid", w.pid);
  visit("samples", w.samples);
  visit("busy_s", w.busy_s);
  visit("wait_s", w.wait_s);
  visit("in_hand_s", w.in_hand_s);
  visit("stopped", w.stopped);
  visit("restarts", w.restarts);
}

std::string share_text(double share) { return share < 0 ? "unknown" : fmt::format("{:.1f} %", share * 100); }

/// Nothing where it is 0: loaders of Python datasets leave out what they do not measure.
std::string where_known(const char* form, double value) {
  return value > 0 ? fmt::format(fmt::runtime(form), value) : "";
}

}  // namespace

State LoaderStats::to_state() const {
  State state;
  visit_fields(*this, Writer{state});
  std::vector<State> rows;
  for (const WorkerStats& worker : workers) visit_worker(worker, Writer{rows.emplace_back()});
  state.set("workers", rows);
  if (staging) {
    State copies;
    visit_staging(*staging, Writer{copies});
    state.set("staging", copies);
  }
  const Verdict found = verdict();
  State said;
  said.set("bound", to_string(found.bound));
  said.set("cause", to_string(found.cause));
  said.set("share", found.share);
  said.set("finding", found.finding);
  said.set("advice", found.advice);
  State knobs;
  for (const Knob& knob : found.knobs) knobs.set(knob.option, knob.value);
  said.set("knobs", knobs);
  state.set("verdict", said);
  return state;
}

LoaderStats LoaderStats::from_state(const State& state) {
  LoaderStats stats;
  visit_fields(stats, Reader{state});
  if (state.contains("staging")) {
    const State copies = state.get_state("staging");
    visit_staging(stats.staging.emplace(), Reader{copies});
  }
  if (!state.contains("workers")) return stats;
  for (const State& row : state.get_states("workers")) visit_worker(stats.workers.emplace_back(), Reader{row});
  return stats;
}

std::string LoaderStats::str() const {
  const double all = elapsed_s > 0 ? elapsed_s : 1;
  std::string text = fmt::format(
      "{}\n"
      "{} batches, {} samples in {:.2f} s: {:.0f} samples/s{}\n"
      "time: waiting for data {:.1f} %, sampler {:.1f} %, hand-over {:.1f} %, trainer {:.1f} %; longest wait {:.1f} "
      "ms\n"
      "workers: waiting for room {:.1f} %; of their busy time on a CPU {}, queued for one {}\n"
      "per sample: read {:.1f} us, decode {:.1f} us, transform {:.1f} us, collate {:.1f} us, other {:.1f} us\n"
      "memory: {}{:.1f} MiB for batches; {} held by the user, {} handed out as copies\n"
      "faults: {} restarts, {} samples skipped, {} replaced\n",
      verdict().str(), batches, samples, elapsed_s, samples_per_s,
      where_known("; first batch after {:.1f} ms", first_batch_ms), wait_s / all * 100, sampler_s / all * 100,
      hand_over_s / all * 100, trainer_s / all * 100, longest_wait_ms, blocked_share * 100, share_text(on_cpu_share),
      share_text(cpu_queue_share), read_us, decode_us, transform_us, collate_us, other_us,
      where_known("{:.1f} MiB in all (PSS), of it ", static_cast<double>(pss_bytes) / (1 << 20)),
      static_cast<double>(arena_bytes) / (1 << 20), batches_held, private_copies, restarts, skipped, replaced);
  text += "worker       pid    samples     busy s     wait s  restarts\n";
  for (const WorkerStats& worker : workers)
    text += fmt::format("{:>6} {:>9} {:>10} {:>10.2f} {:>10.2f} {:>9}{}\n", worker.id, worker.pid, worker.samples,
                        worker.busy_s, worker.wait_s, worker.restarts, worker.stopped ? "  stopped" : "");
  return staging ? text + "staging: " + staging->str() : text;
}

}  // namespace infeed
