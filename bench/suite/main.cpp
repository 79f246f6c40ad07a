/// infeed-bench: what the engine reaches of the machine's limit, a table on the terminal and, with --json, a file.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <exception>

#include "bed.h"

namespace bench {
namespace {

struct Question {
  const char* id;
  void (*answer)(const Bed& bed, Report& report);
};

// E2, E3 and J4 set the loader beside other projects' loaders, T5 to T7 run the training library from
// Python: they are not here.
constexpr Question kQuestions[] = {{"E1", loader_share},
                                   {"E4", image_cost},
                                   {"E5", transport},
                                   {"E6", hand_over},
                                   {"E7", native_rows},
                                   {"E8", many_workers},
                                   {"E9", start},
                                   {"E10", train_step},
                                   {"E11", samplers},
                                   {"E12", slow_rows},
                                   {"E13", staging},
                                   {"E14", insight},
                                   {"J1", jpeg_entropy},
                                   {"J2", jpeg_paths},
                                   {"J3", jpeg_evaluation},
                                   {"J5", jpeg_lighter},
                                   {"J6", jpeg_resize},
                                   {"J7", jpeg_large},
                                   {"J8", jpeg_progressive},
                                   {"L1", torch_pictures},
                                   {"L2", torch_rows},
                                   {"S1", workers_decode},
                                   {"S2", workers_read},
                                   {"S3", workers_transfer},
                                   {"S4", workers_trainer},
                                   {"S5", workers_bursty},
                                   {"S6", workers_budget},
                                   {"S7", published_sweeps},
                                   {"T1", train_mlp},
                                   {"T2", train_transformer},
                                   {"T3", train_resnet},
                                   {"T4", small_operations},
                                   {"T8", train_memory}};

struct Options {
  Bed bed;
  std::string json;
  std::vector<std::string> only;
};

Options parse(int argc, char** argv) {
  Options options;
  CLI::App app("The engine against the machine's limit. Medians of interleaved rounds; * marks a loaded machine.");
  std::vector<std::string> ids;
  for (const Question& question : kQuestions) ids.emplace_back(question.id);
  CLI::Option* rounds =
      app.add_option("--rounds", options.bed.rounds, "Rounds a contestant")->check(CLI::Range(1, 1000));
  rounds->capture_default_str();
  app.add_option("--json", options.json, "Writes the table to this file");
  app.add_option("--only", options.only, "Questions, E1,E5,...")->delimiter(',')->check(CLI::IsMember(ids));
  app.add_option("--data", options.bed.images, "An ImageFolder instead of the images made here");
  app.add_option("--scratch", options.bed.scratch, "Where images are made")->capture_default_str();
  app.add_flag("--quick", options.bed.quick, "Little work, one round: shows that all runs; the times mean nothing");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    std::exit(app.exit(error));
  }
  if (options.bed.quick && rounds->count() == 0) options.bed.rounds = 1;
  return options;
}

/// False where it failed; the others go on.
bool ask(const Question& question, const Bed& bed, Report& report) {
  const std::size_t first = report.size();
  try {
    const ForeignLoad foreign;
    question.answer(bed, report);
    report.mark_foreign(first, foreign.share());
    report.print(first, first == 0);
    return true;
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}: {}\n", question.id, error.what());
    return false;
  }
}

int run(Options options) {
  const Machine machine = this_machine();
  fmt::print("{}, {} cores, {:.0f} GiB, Linux {}, {}, {}; rounds: {}\n\n", machine.cpu, machine.cores,
             machine.memory_gib, machine.kernel, machine.compiler, machine.date, options.bed.rounds);
  std::fflush(stdout);
  provide_images(options.bed);
  Report report;
  bool good = true;
  for (const Question& question : kQuestions) {
    const bool asked =
        options.only.empty() || std::find(options.only.begin(), options.only.end(), question.id) != options.only.end();
    if (asked) good = ask(question, options.bed, report) && good;
  }
  if (!options.json.empty()) report.write_json(options.json, machine);
  return good ? 0 : 1;
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
  try {
    return bench::run(bench::parse(argc, argv));
  } catch (const std::exception& error) {
    fmt::print(stderr, "infeed-bench: {}\n", error.what());
    return 2;
  }
}
