#include <fmt/format.h>

#include <memory>
#include <string>
#include <vector>

#include "tools/command.h"
#include "tools/interrupt.h"
#include "tools/job_arguments.h"

namespace infeed::tools {
namespace {

struct Given {
  JobArguments job;
  std::vector<std::string> kinds = {"thread", "fork"};
  SweepOptions sweep;
  bool pageable_too = false;
  OutputArguments output;
};

int run(Given& given) {
  catch_interrupts();
  given.output.check();
  const auto dataset = given.job.dataset();
  SweepOptions options = given.sweep;
  options.kinds = worker_kinds(given.kinds);
  if (given.pageable_too) options.pinned = {true, false};
  options.job = given.job.options();
  options.on_progress = [](int run, int runs, const WorkerSetting& setting) {
    show_progress(fmt::format("run {} of {}: {} ...", run, runs, setting.str()));
  };
  const SweepReport report = sweep(*dataset, options);
  show_progress("");
  given.output.print(report);
  return report.interrupted ? kInterrupted : 0;
}

}  // namespace

Command configure_sweep(CLI::App& app) {
  app.footer(
      "Example: infeed sweep --images train --workers 0 1 2 4 8 --step-ms 20 --svg sweep.svg\n"
      "Ctrl-C keeps what was measured. Exit status: 0, 1 for errors, 130 after Ctrl-C.");
  const auto given = std::make_shared<Given>();
  given->job.add_to(app);
  app.add_option("--workers", given->sweep.workers, "Counts of workers; 0: the trainer's thread reads")
      ->capture_default_str();
  app.add_option("--kinds", given->kinds, "thread, fork, spawn")->capture_default_str();
  app.add_option("--threads", given->sweep.threads, "Threads of each worker")->capture_default_str();
  app.add_option("--prefetch", given->sweep.prefetch, "Batches in flight, in all; 0: the loader's default")
      ->capture_default_str();
  app.add_flag("--pageable-too", given->pageable_too, "With a device: from memory that is not page-locked, too");
  app.add_option("--repetitions", given->sweep.repetitions, "Runs of each setting, in turns")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  given->output.add_to(app);
  return {&app, [given] { return run(*given); }};
}

Command add_sweep(CLI::App& program) {
  return configure_sweep(*program.add_subcommand("sweep", "Measure kinds and numbers of workers, and recommend one"));
}

}  // namespace infeed::tools
