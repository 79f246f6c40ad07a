#include "tools/interrupt.h"

#include <csignal>

namespace infeed::tools {
namespace {

std::atomic<bool> asked_to_stop{false};

}  // namespace

void catch_interrupts() {
  struct sigaction action {};
  action.sa_handler = [](int) { asked_to_stop = true; };
  action.sa_flags = static_cast<int>(SA_RESETHAND) | SA_RESTART;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

const std::atomic<bool>& interrupted() noexcept { return asked_to_stop; }

}  // namespace infeed::tools
