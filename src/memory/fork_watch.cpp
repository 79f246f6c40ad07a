#include "memory/fork_watch.h"

#include <pthread.h>

#include <atomic>

namespace infeed {
namespace {

std::atomic<std::uint64_t> g_user_forks{0};
std::atomic<std::uint64_t> g_generation{0};
thread_local int t_own_forks = 0;

void count_fork_in_parent() {
  if (t_own_forks == 0) g_user_forks.fetch_add(1, std::memory_order_relaxed);
}
void count_fork_in_child() { g_generation.fetch_add(1, std::memory_order_relaxed); }

}  // namespace

void watch_forks() {
  [[maybe_unused]] static const int registered = pthread_atfork(nullptr, count_fork_in_parent, count_fork_in_child);
}

std::uint64_t user_forks() noexcept { return g_user_forks.load(std::memory_order_relaxed); }
std::uint64_t process_generation() noexcept { return g_generation.load(std::memory_order_relaxed); }

OwnFork::OwnFork() noexcept { ++t_own_forks; }
OwnFork::~OwnFork() { --t_own_forks; }

}  // namespace infeed
