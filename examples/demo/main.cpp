// infeed-demo: makes a set of images, trains a small CNN on it, and finds out which worker setting suits this machine.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <climits>
#include <cstdlib>
#include <optional>

#include "console.h"
#include "infeed/loader/trace.h"
#include "infeed/train/parallel.h"
#include "make_images.h"
#include "report.h"
#include "stop.h"

namespace {

constexpr int kExitFailed = 1;
constexpr int kExitStopped = 130;  // as a shell reports Ctrl-C

struct Options {
  std::string data;  ///< default: by quick
  std::string out = "build/demo.json";
  std::string trace;  ///< empty: none
  int epochs = 6;
  int workers = 0;  ///< 0: one a core, at most 8
  std::uint64_t seed = 1;
  bool quick = false;
  bool no_sweep = false;
};

// Idle OpenMP threads spin for a while by default, on cores that workers could use. The runtime reads the variable
// before main, so it takes effect in a fresh image of this program only.
void let_idle_threads_sleep(char** argv) {
  if (std::getenv("OMP_WAIT_POLICY") != nullptr) return;
  setenv("OMP_WAIT_POLICY", "passive", 1);
  char self[PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);
  if (length <= 0) return;
  self[length] = '\0';
  execv(self, argv);  // comes back only if it fails; then threads spin, and all else is the same
}

void add_options(CLI::App& app, Options& options) {
  app.add_option("--data", options.data, "Folder of the images; made if absent [build/demo-data]");
  app.add_option("--out", options.out, "Where the figures go, as JSON")->capture_default_str();
  app.add_option("--trace", options.trace, "Where a trace of the training goes, for ui.perfetto.dev");
  app.add_option("--epochs", options.epochs, "Epochs of training")->check(CLI::Range(1, 1000))->capture_default_str();
  app.add_option("--workers", options.workers, "Worker processes of the training [one a core, at most 8]")
      ->check(CLI::Range(1, 64));
  app.add_option("--seed", options.seed, "Of images, weights and shuffle")->capture_default_str();
  app.add_flag("--quick", options.quick, "A smoke test: few images, one epoch, a short sweep, no demand on accuracy");
  app.add_flag("--no-sweep", options.no_sweep, "Train only");
}

void settle_defaults(Options& options, const CLI::App& app, int cpus) {
  if (options.data.empty()) options.data = options.quick ? "build/demo-data-quick" : "build/demo-data";
  if (options.workers == 0) options.workers = std::min(8, cpus);
  if (options.quick && app.count("--epochs") == 0) options.epochs = 1;
}

void make_images(const Options& options) {
  demo::ImageSetOptions set{.root = options.data, .seed = options.seed};
  if (options.quick) {
    set.train = 200;
    set.val = 50;
  }
  demo::say(fmt::format("Images: {} to train, {} to validate, JPEG of about 500 x 375, in {}",
                        demo::count_text(set.train), demo::count_text(set.val), options.data));
  demo::ProgressLine progress;
  const demo::Stopwatch clock;
  const auto summary = demo::make_image_set(set, [&](int done, int total) {
    demo::stop_if_asked();
    const double left = done == 0 ? 0 : clock.seconds() * (total - done) / done;
    progress.update(fmt::format("made {} of {}, {} left", done, total, demo::duration_text(left)));
  });
  progress.clear();
  demo::say(fmt::format("  {} MB in {} classes, {}", summary.total_bytes / 1'000'000, summary.classes.size(),
                        summary.reused ? "from an earlier run" : "made in " + demo::duration_text(summary.seconds)));
}

void train(const Options& options, int threads, demo::Report& report) {
  demo::say(
      fmt::format("\nTraining: a CNN on random crops of 64 x 64, fed by {} worker processes (fork); the model has {} "
                  "core{}",
                  options.workers, threads, threads == 1 ? "" : "s"));
  std::optional<infeed::Trace> trace;
  if (!options.trace.empty()) trace.emplace();
  report.training =
      demo::train({.data = options.data, .epochs = options.epochs, .workers = options.workers, .seed = options.seed});
  demo::say(fmt::format("  validation accuracy {:.1f} % after {}", demo::validation_accuracy(report.training) * 100,
                        demo::duration_text(report.training.seconds)));
  demo::say("  " + report.training.verdict);
  if (!trace) return;
  trace->write(options.trace);
  demo::say(fmt::format("  the trace is in {}: open it at ui.perfetto.dev", options.trace));
}

void sweep(const Options& options, demo::Report& report) {
  demo::SweepOptions sweep{.data = options.data, .seed = options.seed};
  if (options.quick) {
    sweep.workers = {2};
    sweep.repetitions = 1;
    sweep.run_seconds = 0.5;
  }
  demo::say(fmt::format(
      "\nWorker sweep: the same data feed a model of half the width (so that feeding matters), {} x {:.2g} s a row.\n"
      "CPU and memory (PSS) are of all processes, the model included; step is the share of time that the trainer\n"
      "computed and did not wait for data.\n",
      sweep.repetitions, sweep.run_seconds));
  report.sweep = demo::sweep(sweep);
  demo::say(report.sweep.str());
}

int run(const Options& options, const demo::Machine& machine) {
  const demo::Stopwatch clock;
  demo::check_place_of_report(options.out);
  demo::say(fmt::format("infeed {} on {} cores ({}), {:.0f} GiB, {}\n", machine.version, machine.cpus, machine.cpu,
                        machine.memory_gib, machine.kernel));
  // Half of the cores compute, so that workers find some free; the sweep's rows use as many.
  const int threads = std::max(1, machine.cpus / 2);
  infeed::set_num_threads(threads);
  demo::Report report{.machine = machine};
  make_images(options);
  train(options, threads, report);
  if (!options.no_sweep) sweep(options, report);
  demo::write_report(report, options.out);
  demo::say(fmt::format("\nThese figures are in {}{}. {} in all.", options.out,
                        options.no_sweep ? "" : ", the sweep's picture in " + demo::picture_path(options.out),
                        demo::duration_text(clock.seconds())));
  const double accuracy = demo::validation_accuracy(report.training);
  constexpr double kDemanded = 0.9;
  if (options.quick || accuracy >= kDemanded) return 0;
  fmt::print(stderr, "infeed-demo: validation accuracy is {:.1f} %, {:.0f} % was expected; something is wrong{}\n",
             accuracy * 100, kDemanded * 100, options.epochs < 6 ? ", or --epochs is too small" : "");
  return kExitFailed;
}

}  // namespace

int main(int argc, char** argv) {
  let_idle_threads_sleep(argv);
  demo::catch_stop_signals();
  Options options;
  CLI::App app("Makes a set of images, trains a small CNN on it, and finds the worker setting that suits this machine.",
               "infeed-demo");
  add_options(app, options);
  CLI11_PARSE(app, argc, argv);
  try {
    const demo::Machine machine = demo::describe_machine();
    settle_defaults(options, app, machine.cpus);
    return run(options, machine);
  } catch (const demo::Stopped&) {
    fmt::print(stderr, "infeed-demo: stopped\n");
    return kExitStopped;
  } catch (const std::exception& error) {
    fmt::print(stderr, "infeed-demo: {}\n", error.what());
    return kExitFailed;
  }
}
