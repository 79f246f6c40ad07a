#pragma once
// Workers that die at a named step of the ring's protocol. Only for programs that link mortal_worker, whose ring has
// hooks.

#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "infeed/loader/options.h"
#include "ring/steps.h"
#include "support/temp_folder.h"

namespace infeed::testing {

/// Lets `deaths` workers of this process's loaders die at `step`, and no more, while it lives. Each death takes a file
/// away, since whoever dies can tell nobody; environment variables name step and folder to spawned workers, too.
class Deaths {
 public:
  Deaths(RingStep step, int deaths) {
    for (int death = 0; death < deaths; ++death) folder_.write(std::to_string(death), "");
    ::setenv("INFEED_TEST_STEP", std::to_string(static_cast<int>(step)).c_str(), 1);
    ::setenv("INFEED_TEST_DEATHS", folder_.str().c_str(), 1);
  }
  ~Deaths() { ::unsetenv("INFEED_TEST_STEP"); }
  Deaths(const Deaths&) = delete;
  Deaths& operator=(const Deaths&) = delete;

 private:
  TempFolder folder_;
};

inline bool take_a_death() {
  for (const auto& death : std::filesystem::directory_iterator(std::getenv("INFEED_TEST_DEATHS"))) {
    if (::unlink(death.path().c_str()) == 0) return true;
  }
  return false;
}

/// A worker_init: this worker may die at its first, second or third passing of the step.
inline void become_mortal(const WorkerInfo& /*info*/) {
  static RingStep step;
  static int passes;
  step = static_cast<RingStep>(std::atoi(std::getenv("INFEED_TEST_STEP")));
  passes = 1 + ::getpid() % 3;
  ring_step_hook = [](RingStep here) {
    if (here == step && --passes == 0 && take_a_death()) ::raise(SIGKILL);
  };
}

}  // namespace infeed::testing
