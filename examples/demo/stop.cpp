#include "stop.h"

#include <csignal>

namespace demo {
namespace {

volatile std::sig_atomic_t asked = 0;

}  // namespace

void catch_stop_signals() {
  struct sigaction action {};
  action.sa_handler = [](int) { asked = 1; };
  action.sa_flags = SA_RESTART;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

void stop_if_asked() {
  if (asked != 0) throw Stopped();
}

}  // namespace demo
