// Signals of a Python worker: a line before a fatal one ends it, a quiet end when its consumer ends it. In C, since
// Python's handlers run only between bytecodes.

#include <nanobind/nanobind.h>
#include <unistd.h>

#include <csignal>
#include <cstring>

namespace infeed::python {
namespace nb = nanobind;
namespace {

pid_t consumer = 0;

const char* text_of(int number) {
  switch (number) {
    case SIGBUS: return "ERROR: Unexpected bus error encountered in worker. Shared memory may be used up.\n";
    case SIGSEGV: return "ERROR: Unexpected segmentation fault encountered in worker.\n";
    default: return "ERROR: Unexpected floating-point exception encountered in worker.\n";
  }
}

void die_by(int number) {
  std::signal(number, SIG_DFL);
  std::raise(number);  // blocked while its handler runs: takes effect on return
}

void on_fatal(int number, siginfo_t*, void*) {
  const char* const text = text_of(number);
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, text, std::strlen(text));
  die_by(number);
}

void on_terminate(int number, siginfo_t* info, void*) {
  if (info->si_pid == consumer || info->si_pid == ::getppid()) ::_exit(0);
  die_by(number);
}

void install(int number, void (*handler)(int, siginfo_t*, void*)) {
  struct sigaction action = {};
  action.sa_sigaction = handler;
  action.sa_flags = SA_SIGINFO;
  sigemptyset(&action.sa_mask);
  ::sigaction(number, &action, nullptr);
}

void handle_worker_signals(int consumer_pid) {
  consumer = consumer_pid;
  for (const int fatal : {SIGBUS, SIGSEGV, SIGFPE}) install(fatal, on_fatal);
  install(SIGTERM, on_terminate);
}

}  // namespace

void bind_signals(nb::module_& module) {
  module.def("handle_worker_signals", &handle_worker_signals, nb::arg("consumer_pid"),
             "In a worker: SIGBUS, SIGSEGV and SIGFPE say so on stderr before they end it; SIGTERM ends it with exit\n"
             "code 0 if it comes from the consumer or the parent.");
}

}  // namespace infeed::python
