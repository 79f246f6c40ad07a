#pragma once
/// The events of the trace that runs, if one does. One a process: loaders find it without being told.

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace infeed {

/// A row of the picture.
struct TraceTrack {
  pid_t process = 0;
  pid_t thread = 0;
  friend auto operator<=>(const TraceTrack&, const TraceTrack&) = default;
};

struct TraceEvent {
  enum class Kind : std::uint8_t { kSpan, kFlowBegin, kFlowEnd };
  const char* name = "";  ///< lives for ever
  const char* category = "";
  Kind kind = Kind::kSpan;
  TraceTrack track{};
  std::uint64_t begin_ns = 0, end_ns = 0;
  std::uint64_t flow = 0;  ///< of kFlowBegin and kFlowEnd
  std::int64_t batch = -1, epoch = -1;
  std::int64_t rows = -1;
  std::uint64_t stage_ns[4] = {};  ///< of a run: read, decode, transform, collate
};

/// Somebody with events that wait to be fetched.
class TraceSource {
 public:
  virtual ~TraceSource() = default;
  /// Adds them to the tracer. Threads: any.
  virtual void drain() noexcept = 0;
};

/// Threads: any.
class Tracer {
 public:
  /// `inherited` is the one of the process that this one was forked from.
  Tracer(std::uint64_t home, const Tracer* inherited) : home_(home), inherited_(inherited) {}
  /// The one of this process; never destroyed. A forked child gets its own, where nothing runs.
  [[nodiscard]] static Tracer& instance();
  /// The question of the hot path.
  [[nodiscard]] static bool running() noexcept { return running_.load(std::memory_order_relaxed); }

  /// False where one runs already.
  [[nodiscard]] bool start();
  /// Fetches what sources have, and lets go of them.
  void stop();
  void clear();
  /// Fetches from sources what they have.
  void drain_sources();
  void add_source(const std::weak_ptr<TraceSource>& source);

  void add(std::span<const TraceEvent> events) noexcept;
  void add(const TraceEvent& event) noexcept { add(std::span(&event, 1)); }
  void name_track(TraceTrack track, const std::string& name);
  void lost(std::uint64_t events) noexcept { lost_ += events; }
  /// A flow that no other has.
  [[nodiscard]] std::uint64_t new_flow() noexcept { return ++flows_; }
  /// A copy of `name` that lives for ever.
  [[nodiscard]] const char* keep(std::string_view name);

  [[nodiscard]] std::string json() const;

 private:
  static inline std::atomic<bool> running_{false};

  const std::uint64_t home_;                        ///< process_generation() of the maker
  [[maybe_unused]] const Tracer* const inherited_;  ///< never asked: so that no checker of leaks misses it
  mutable std::mutex mutex_;                        ///< all below but the atomics
  std::uint64_t begin_ns_ = 0;
  std::vector<TraceEvent> events_;
  std::map<TraceTrack, std::string> tracks_;
  std::vector<std::weak_ptr<TraceSource>> sources_;
  std::map<std::string, std::unique_ptr<std::string>, std::less<>> names_;
  std::uint64_t dropped_ = 0;
  std::atomic<std::uint64_t> lost_{0};
  std::atomic<std::uint64_t> flows_{0};
};

/// The calling thread.
[[nodiscard]] TraceTrack this_track() noexcept;
/// The name that the kernel has for the calling thread.
[[nodiscard]] std::string this_thread_name();

/// Starts the trace that INFEED_TRACE asks for, once; it is written when the process exits.
void trace_by_environment();

}  // namespace infeed
