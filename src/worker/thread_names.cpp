#include "worker/thread_names.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <atomic>

#include "base/descriptor.h"
#include "worker/process.h"

namespace infeed {
namespace {

std::atomic<std::uint64_t> pools{0};

struct Lent {
  std::uint64_t pool = 0;
  int worker_id = -1;
};
thread_local Lent lent;

void name_thread(pid_t thread, const std::string& name) {
  const std::string path = fmt::format("/proc/self/task/{}/comm", thread);
  const Descriptor file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (file.valid()) [[maybe_unused]]
    const auto written = ::write(file.fd(), name.data(), name.size());
}

}  // namespace

ThreadNames::ThreadNames() : pool_(++pools) {}

ThreadNames::~ThreadNames() {
  for (const auto& [thread, name] : before_) name_thread(thread, name);
}

void ThreadNames::lend(int worker_id) {
  if (lent.pool == pool_ && lent.worker_id == worker_id) return;
  if (lent.pool != pool_) {
    char name[16] = {};
    ::prctl(PR_GET_NAME, name);
    const std::lock_guard lock(mutex_);
    before_.emplace_back(::gettid(), name);
  }
  lent = {pool_, worker_id};
  name_this_thread(worker_name(worker_id));
}

}  // namespace infeed
