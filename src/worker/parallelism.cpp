#include "worker/parallelism.h"

#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/info.h>

#include <memory>
#include <mutex>

namespace infeed {
namespace {

// One for the process, as oneTBB's pool of threads is: of several global_controls the smallest would win.
struct Budget {
  std::mutex mutex;
  int extra = 0;
  std::unique_ptr<tbb::global_control> control;

  static Budget& get() {
    static auto* const budget = new Budget;  // intentional: outlives pools of static duration
    return *budget;
  }

  void change(int by) {
    const std::lock_guard lock(mutex);
    extra += by;
    control.reset();
    if (extra == 0) return;
    const auto threads = static_cast<std::size_t>(tbb::info::default_concurrency()) + static_cast<std::size_t>(extra);
    control = std::make_unique<tbb::global_control>(tbb::global_control::max_allowed_parallelism, threads);
  }
};

}  // namespace

ExtraParallelism::ExtraParallelism(int threads) : threads_(threads) { Budget::get().change(threads_); }
ExtraParallelism::~ExtraParallelism() { Budget::get().change(-threads_); }

}  // namespace infeed
