#include <fmt/format.h>

#include <iterator>
#include <nlohmann/json.hpp>
#include <set>

#include "loader/tracer.h"

// Chrome's Trace Event Format: complete events (X) on a track of process and thread, flow events (s, f) between them,
// metadata (M) for names. Times are microseconds since the trace began.

namespace infeed {
namespace {

constexpr const char* kStages[] = {"read", "decode", "transform", "collate"};

// A thread's name is cut in the middle of a character where it is too long.
std::string quoted(std::string_view text) {
  using nlohmann::json;
  return json(text).dump(-1, ' ', false, json::error_handler_t::replace);
}

/// Writes events one after another.
class Writer {
 public:
  Writer(std::string& text, std::uint64_t begin_ns) : text_(text), begin_ns_(begin_ns) {}

  void name_process(pid_t process, std::string_view name) {
    open("M", "process_name", "__metadata", {.process = process, .thread = process});
    add(R"(,"args":{{"name":{}}}}})", quoted(name));
  }
  void name_thread(const TraceTrack& track, std::string_view name) {
    open("M", "thread_name", "__metadata", track);
    add(R"(,"args":{{"name":{}}}}})", quoted(name));
  }
  void span(const TraceEvent& event) {
    open("X", event.name, event.category, event.track);
    times(event.begin_ns, event.end_ns - event.begin_ns);
    args(event);
    std::uint64_t at = event.begin_ns;
    for (std::size_t stage = 0; stage < std::size(kStages); ++stage) {
      const std::uint64_t took = std::min(event.stage_ns[stage], event.end_ns - at);
      if (took == 0) continue;
      open("X", kStages[stage], "stage", event.track);
      times(at, took);
      add(R"(,"args":{{"sum_over_rows":true}}}})");
      at += took;
    }
  }
  void flow(const TraceEvent& event) {
    const bool begins = event.kind == TraceEvent::Kind::kFlowBegin;
    open(begins ? "s" : "f", event.name, event.category, event.track);
    add(R"(,"ts":{:.3f},"id":{}{}}})", microseconds(event.begin_ns), event.flow, begins ? "" : R"(,"bp":"e")");
  }

 private:
  template <typename... Args>
  void add(fmt::format_string<Args...> format, Args&&... values) {
    fmt::format_to(std::back_inserter(text_), format, std::forward<Args>(values)...);
  }
  void open(const char* phase, std::string_view name, const char* category, const TraceTrack& track) {
    add(R"({}{{"ph":"{}","name":{},"cat":"{}","pid":{},"tid":{})", first_ ? "" : ",\n", phase, quoted(name), category,
        track.process, track.thread);
    first_ = false;
  }
  void times(std::uint64_t begin_ns, std::uint64_t length_ns) {
    add(R"(,"ts":{:.3f},"dur":{:.3f})", microseconds(begin_ns), static_cast<double>(length_ns) * 1e-3);
  }
  void args(const TraceEvent& event) {
    std::string inner;
    const auto field = [&inner](const char* name, std::int64_t value) {
      if (value >= 0) inner += fmt::format(R"({}"{}":{})", inner.empty() ? "" : ",", name, value);
    };
    field("batch", event.batch);
    field("epoch", event.epoch);
    field("rows", event.rows);
    add(R"(,"args":{{{}}}}})", inner);
  }
  /// A span may have begun before the trace.
  [[nodiscard]] double microseconds(std::uint64_t ns) const {
    return (static_cast<double>(ns) - static_cast<double>(begin_ns_)) * 1e-3;
  }

  std::string& text_;
  std::uint64_t begin_ns_;
  bool first_ = true;
};

}  // namespace

std::string Tracer::json() const {
  const std::lock_guard lock(mutex_);
  std::string text = R"({"displayTimeUnit":"ms","traceEvents":[)";
  text += '\n';
  Writer writer(text, begin_ns_);
  std::set<pid_t> processes;
  for (const auto& [track, name] : tracks_) {
    if (processes.insert(track.process).second)
      writer.name_process(track.process, track.process == this_track().process ? "trainer" : "worker " + name);
    writer.name_thread(track, name);
  }
  for (const TraceEvent& event : events_) {
    if (event.kind == TraceEvent::Kind::kSpan)
      writer.span(event);
    else
      writer.flow(event);
  }
  text +=
      fmt::format("\n],\"otherData\":{{\"dropped_events\":{},\"overwritten_runs\":{}}}}}\n", dropped_, lost_.load());
  return text;
}

}  // namespace infeed
