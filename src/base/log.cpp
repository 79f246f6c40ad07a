#include "infeed/base/log.h"

#include <pthread.h>
#include <spdlog/logger.h>
#include <spdlog/sinks/stdout_sinks.h>

#include <atomic>
#include <cstdlib>
#include <mutex>
#include <string>
#include <utility>

namespace infeed {
namespace {

constexpr LogLevel kDefaultLevel = LogLevel::kWarning;

spdlog::level::level_enum to_spdlog(LogLevel level) {
  switch (level) {
    case LogLevel::kTrace: return spdlog::level::trace;
    case LogLevel::kDebug: return spdlog::level::debug;
    case LogLevel::kInfo: return spdlog::level::info;
    case LogLevel::kWarning: return spdlog::level::warn;
    case LogLevel::kError: return spdlog::level::err;
    case LogLevel::kOff: break;
  }
  return spdlog::level::off;
}

LogLevel level_from_environment() {
  constexpr std::pair<std::string_view, LogLevel> kNames[] = {
      {"trace", LogLevel::kTrace},     {"debug", LogLevel::kDebug},  {"info", LogLevel::kInfo},
      {"warning", LogLevel::kWarning}, {"warn", LogLevel::kWarning}, {"error", LogLevel::kError},
      {"off", LogLevel::kOff}};
  const char* text = std::getenv("INFEED_LOG");
  if (text == nullptr) return kDefaultLevel;
  for (const auto& [name, level] : kNames) {
    if (name == text) return level;
  }
  return kDefaultLevel;
}

// Whether this thread is inside the log: a sink that logs, replaces the sink or forks must not lock again.
thread_local bool inside = false;

// The one of this process; made on first use and never destroyed, so that static destructors may still log.
//
// fork: the mutex is taken around every fork, so a child never inherits it locked by a thread that is gone. It is a
// plain one, which the child may unlock (a recursive one would ask for the parent's thread). No thread, no queue, no
// local time, whose lock would not survive a fork.
struct Log {
  std::mutex mutex;
  std::atomic<LogLevel> level{level_from_environment()};
  std::function<void(LogLevel, std::string_view)> sink;
  spdlog::logger stderr_logger{"infeed", std::make_shared<spdlog::sinks::stderr_sink_st>()};

  Log() {
    stderr_logger.set_pattern("infeed[%P] %l: %v");
    stderr_logger.set_level(spdlog::level::trace);
    pthread_atfork(&lock_for_fork, &unlock_after_fork, &unlock_after_fork);
  }

  static Log& get() {
    static Log& log = *new Log;  // intentional: outlives every static
    return log;
  }

  static void lock_for_fork() {
    if (!inside) get().mutex.lock();
  }
  static void unlock_after_fork() {
    if (!inside) get().mutex.unlock();
  }
};

// Holds the log; does nothing where this thread holds it already.
class Entry {
 public:
  explicit Entry(Log& log) : mutex_(inside ? nullptr : &log.mutex) {
    if (mutex_ == nullptr) return;
    mutex_->lock();
    inside = true;
  }
  ~Entry() {
    if (mutex_ == nullptr) return;
    inside = false;
    mutex_->unlock();
  }
  Entry(const Entry&) = delete;
  Entry& operator=(const Entry&) = delete;

  [[nodiscard]] bool is_outermost() const noexcept { return mutex_ != nullptr; }

 private:
  std::mutex* mutex_;
};

}  // namespace

void set_log_level(LogLevel level) { Log::get().level.store(level, std::memory_order_relaxed); }

LogLevel log_level() { return Log::get().level.load(std::memory_order_relaxed); }

void set_log_sink(std::function<void(LogLevel, std::string_view)> sink) {
  Log& log = Log::get();
  const Entry entry(log);
  log.sink.swap(sink);  // the old one is destroyed by this function's caller, after the lock
}

void log(LogLevel level, std::string_view message) {
  Log& log = Log::get();
  if (level >= LogLevel::kOff || level < log.level.load(std::memory_order_relaxed)) return;
  const Entry entry(log);
  if (log.sink && entry.is_outermost()) {
    const auto sink = log.sink;  // a copy: the sink may replace itself
    sink(level, message);
  } else {  // also what a sink logs
    log.stderr_logger.log(to_spdlog(level), message);
  }
}

}  // namespace infeed
