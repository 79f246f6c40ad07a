#include "loader/tracer.h"

#include <fmt/format.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cstdlib>
#include <mutex>

#include "base/clock.h"
#include "base/whole_file.h"
#include "infeed/base/error.h"
#include "infeed/base/log.h"
#include "infeed/loader/trace.h"
#include "memory/fork_watch.h"

namespace infeed {
namespace {

constexpr std::string_view kWhat = "the trace";

std::string with_pid(std::string path) {
  for (std::size_t at = 0; (at = path.find("%p", at)) != std::string::npos;)
    path.replace(at, 2, std::to_string(getpid()));
  return path;
}

}  // namespace

Tracer& Tracer::instance() {
  static std::atomic<Tracer*> current{nullptr};
  Tracer* tracer = current.load(std::memory_order_acquire);
  if (tracer != nullptr && tracer->home_ == process_generation()) return *tracer;
  // The first, or a child of a fork: locks and events of the parent's are no use to it, and its trace is not the child's.
  if (tracer != nullptr) running_ = false;
  auto* const made = new Tracer(process_generation(), tracer);  // intentional: loaders may outlive every static object
  if (current.compare_exchange_strong(tracer, made, std::memory_order_acq_rel)) return *made;
  delete made;
  return *tracer;
}

bool Tracer::start() {
  const std::lock_guard lock(mutex_);
  if (running_.load()) return false;
  events_.clear();
  tracks_.clear();
  dropped_ = 0;
  lost_ = 0;
  begin_ns_ = monotonic_ns();
  running_ = true;
  return true;
}

void Tracer::stop() {
  drain_sources();
  running_ = false;
}

void Tracer::clear() {
  const std::lock_guard lock(mutex_);
  events_ = {};
  tracks_.clear();
  std::erase_if(sources_, [](const auto& source) { return source.expired(); });
}

void Tracer::drain_sources() {
  std::vector<std::weak_ptr<TraceSource>> sources;
  {
    const std::lock_guard lock(mutex_);
    sources = sources_;
  }
  for (const auto& weak : sources) {
    if (const auto source = weak.lock()) source->drain();
  }
}

void Tracer::add_source(const std::weak_ptr<TraceSource>& source) {
  const std::lock_guard lock(mutex_);
  std::erase_if(sources_, [](const auto& old) { return old.expired(); });
  sources_.push_back(source);
}

void Tracer::add(std::span<const TraceEvent> events) noexcept {
  const std::lock_guard lock(mutex_);
  const std::size_t room = running_.load(std::memory_order_relaxed) ? Trace::kMostEvents - events_.size() : 0;
  const std::size_t fit = std::min(room, events.size());
  dropped_ += events.size() - fit;
  try {
    events_.insert(events_.end(), events.begin(), events.begin() + static_cast<std::ptrdiff_t>(fit));
  } catch (const std::bad_alloc&) {
    dropped_ += fit;
  }
}

void Tracer::name_track(TraceTrack track, const std::string& name) {
  const std::lock_guard lock(mutex_);
  tracks_.emplace(track, name);
}

const char* Tracer::keep(std::string_view name) {
  const std::lock_guard lock(mutex_);
  const auto found = names_.find(name);
  if (found != names_.end()) return found->second->c_str();
  return names_.emplace(std::string(name), std::make_unique<std::string>(name)).first->second->c_str();
}

TraceTrack this_track() noexcept { return {.process = ::getpid(), .thread = ::gettid()}; }

std::string this_thread_name() {
  char name[16] = {};
  ::prctl(PR_GET_NAME, name);
  return name;
}

Trace::Trace(std::string path) : path_(with_pid(std::move(path))) {
  watch_forks();
  home_ = process_generation();
  if (!path_.empty()) check_whole_file(path_, kWhat);
  if (!Tracer::instance().start())
    throw ConfigError("a trace runs in this process already (INFEED_TRACE, or another infeed::Trace). End it first.");
}

Trace::~Trace() {
  if (process_generation() != home_) return;
  Tracer& tracer = Tracer::instance();
  tracer.stop();
  try {
    if (!path_.empty()) write(path_);
  } catch (const std::exception& error) {
    log(LogLevel::kError, error.what());
  }
  tracer.clear();
}

std::string Trace::json() const {
  Tracer::instance().drain_sources();
  return Tracer::instance().json();
}

void Trace::write(const std::string& path) const { write_whole_file(path, json(), kWhat); }

bool Trace::running() noexcept {
  static_cast<void>(Tracer::instance());
  return Tracer::running();
}

void Trace::span(std::string_view name, std::uint64_t begin_ns, std::uint64_t end_ns) {
  if (!Tracer::running()) return;
  Tracer& tracer = Tracer::instance();
  tracer.add({.name = tracer.keep(name),
              .category = "user",
              .track = this_track(),
              .begin_ns = begin_ns,
              .end_ns = std::max(begin_ns, end_ns)});
}

void trace_by_environment() {
  static std::once_flag once;
  std::call_once(once, [] {
    const char* path = std::getenv("INFEED_TRACE");
    if (path == nullptr || *path == '\0' || Tracer::running()) return;
    static Trace* trace = nullptr;
    try {
      trace = new Trace(path);
      std::atexit([] { delete trace; });
    } catch (const Error& error) {
      log(LogLevel::kError, std::string("INFEED_TRACE: ") + error.what());
    }
  });
}

}  // namespace infeed
