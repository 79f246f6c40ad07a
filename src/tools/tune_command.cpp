#include <fmt/format.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "infeed/base/error.h"
#include "tools/command.h"
#include "tools/interrupt.h"
#include "tools/job_arguments.h"

namespace infeed::tools {
namespace {

constexpr double kMostMegabytes = 1e12;

struct Given {
  JobArguments job;
  std::vector<std::string> kinds = {"thread"};
  TuneOptions tune;
  double memory_budget_mb = 0;
  int repetitions = 1;
  OutputArguments output;
};

int run(Given& given) {
  catch_interrupts();
  given.output.check();
  const auto dataset = given.job.dataset();
  TuneOptions options = given.tune;
  options.kinds = worker_kinds(given.kinds);
  options.memory_budget = static_cast<std::uint64_t>(given.memory_budget_mb * 1e6);
  if (dataset->schema().fixed())
    options.batch_bytes = dataset->schema().row_bytes() * static_cast<std::uint64_t>(given.job.job.batch_size);
  int trial = 0;
  const Measure measure = measure_job(*dataset, given.job.options(), given.repetitions);
  const Tuned tuned = tune(
      [&](const WorkerSetting& setting) {
        show_progress(fmt::format("trial {} of at most {}: {} ...", ++trial, options.most_trials, setting.str()));
        return measure(setting);
      },
      options);
  show_progress("");
  given.output.print(tuned);
  return tuned.interrupted ? kInterrupted : 0;
}

struct BenchGiven {
  JobArguments job;
  std::string kind = "thread";
  WorkerSetting setting{.workers = 2};
  int repetitions = 3;
  OutputArguments output;
};

/// A sweep of one setting: nothing is recommended.
struct Measured {
  const SweepReport& report;

  [[nodiscard]] std::string str() const {
    const SweepRow& row = report.rows.front();
    return fmt::format(
        "{}: {:.0f} samples/s (spread {:.1f} % of {} runs), {:.0f} MB, step {:.0f} %, copies {:.0f} %, others {:.0f} % "
        "of the processors\n{}\n",
        row.setting.str(), row.figures.samples_per_s, row.spread * 100, row.runs, row.figures.memory_bytes / 1e6,
        row.figures.utilisation * 100, row.figures.transfer_share * 100, row.figures.others_share * 100,
        row.figures.verdict);
  }
  [[nodiscard]] std::string csv() const { return report.csv(); }
  [[nodiscard]] State to_state() const { return report.to_state().get_states("rows").front(); }
  [[nodiscard]] std::string svg() const { return report.svg(); }
};

// One setting is a sweep of one.
int run_bench(BenchGiven& given) {
  catch_interrupts();
  given.output.check();
  const auto dataset = given.job.dataset();
  const SweepReport report = sweep(*dataset, {.kinds = worker_kinds({given.kind}),
                                              .workers = {given.setting.workers},
                                              .threads = {given.setting.threads},
                                              .prefetch = {given.setting.prefetch},
                                              .pinned = {given.setting.pinned},
                                              .repetitions = given.repetitions,
                                              .job = given.job.options(),
                                              .on_progress = [](int run, int runs, const WorkerSetting&) {
                                                show_progress(fmt::format("run {} of {} ...", run, runs));
                                              }});
  show_progress("");
  given.output.print(Measured{report});
  return report.interrupted ? kInterrupted : 0;
}

}  // namespace

Command add_tune(CLI::App& program) {
  CLI::App& app =
      *program.add_subcommand("tune", "Find the smallest setting that is as fast as any, in a dozen short trials");
  app.footer(
      "Example: infeed tune --images train --step-ms 20 --memory-budget-mb 4000\nCtrl-C keeps what was measured. Exit "
      "status: 0, 1 for errors, 130 after Ctrl-C.");
  const auto given = std::make_shared<Given>();
  given->job.job.seconds = 1.5;
  given->job.add_to(app);
  app.add_option("--kinds", given->kinds, "thread, fork, spawn: the first is searched, the others tried at its end")
      ->capture_default_str();
  app.add_option("--threads", given->tune.threads, "Threads of each worker")->capture_default_str();
  app.add_option("--max-workers", given->tune.max_workers, "Most workers")->capture_default_str();
  app.add_option("--memory-budget-mb", given->memory_budget_mb, "Of all processes, MB; 0: no limit")
      ->check(kNotNegative)
      ->check(CLI::Range(0.0, kMostMegabytes))
      ->capture_default_str();
  app.add_option("--tolerance", given->tune.tolerance, "Of the best rate, given away for a smaller setting")
      ->capture_default_str();
  app.add_option("--trials", given->tune.most_trials, "At most")->capture_default_str();
  app.add_option("--repetitions", given->repetitions, "Runs of each trial")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  given->output.add_to(app);
  return {&app, [given] { return run(*given); }};
}

Command add_bench(CLI::App& program) {
  CLI::App& app = *program.add_subcommand("bench", "Measure one setting, and say what bounds it");
  app.footer(
      "Example: infeed bench --images train --workers 4 --step-ms 20\n"
      "Ctrl-C keeps what was measured. Exit status: 0, 1 for errors, 130 after Ctrl-C.");
  const auto given = std::make_shared<BenchGiven>();
  given->job.add_to(app);
  app.add_option("--kind", given->kind, "thread, fork, spawn")->capture_default_str();
  app.add_option("--workers", given->setting.workers, "0: the trainer's thread reads")->capture_default_str();
  app.add_option("--threads", given->setting.threads, "Of each worker")->capture_default_str();
  app.add_option("--prefetch", given->setting.prefetch, "Batches in flight; 0: the loader's default")
      ->capture_default_str();
  app.add_flag("!--pageable", given->setting.pinned, "With a device: from memory that is not page-locked");
  app.add_option("--repetitions", given->repetitions, "Runs")->check(CLI::PositiveNumber)->capture_default_str();
  given->output.add_to(app);
  return {&app, [given] { return run_bench(*given); }};
}

}  // namespace infeed::tools
