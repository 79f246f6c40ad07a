#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <memory>

#include "base/csv.h"
#include "infeed/base/error.h"
#include "infeed/doctor/doctor.h"
#include "tools/command.h"

namespace infeed::tools {
namespace {

constexpr int kNotExamined = 3;  // exit status; 0 to 2 tell what was found

struct Given {
  DoctorOptions options;
  std::string stats;
  bool json = false, csv = false;
};

std::string read_all(const std::string& path) {
  if (path == "-") return {std::istreambuf_iterator<char>(std::cin), {}};
  std::ifstream file(path);
  std::error_code none;
  if (!file || std::filesystem::is_directory(path, none)) throw DataError(fmt::format("{} cannot be read.", path));
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string csv(const DoctorReport& report) {
  std::string text = "severity,topic,what,advice\n";
  for (const Diagnosis& diagnosis : report.diagnoses)
    text += fmt::format("{},{},{},{}\n", to_string(diagnosis.severity), diagnosis.topic, csv_cell(diagnosis.what),
                        csv_cell(diagnosis.advice));
  return text;
}

int run(const Given& given) {
  DoctorReport report = examine_machine(given.options);
  if (!given.stats.empty()) examine_loader(LoaderStats::from_state(State::from_json(read_all(given.stats))), report);
  fmt::print("{}", given.json ? report.to_state().to_json() + "\n" : given.csv ? csv(report) : report.str());
  return report.exit_code();
}

}  // namespace

Command add_doctor(CLI::App& program) {
  CLI::App& app = *program.add_subcommand("doctor", "Say what on this machine, or in a loader, will hurt");
  app.footer(
      "Example: infeed doctor --stats stats.json\n"
      "Exit status: 0 where all is fine, 1 for warnings, 2 for errors, 3 where it could not look.");
  const auto given = std::make_shared<Given>();
  app.add_option("--stats", given->stats,
                 "A loader's figures, as stats().to_json() gives them; - reads them from standard input");
  app.add_option("--root", given->options.root,
                 "Folder in front of /proc, /sys and /dev, to look at a copy of another machine's");
  CLI::Option* json = app.add_flag("--json", given->json, "Print facts and findings as JSON");
  app.add_flag("--csv", given->csv, "Print the findings as CSV")->excludes(json);
  return {&app, [given] { return run(*given); }, kNotExamined};
}

}  // namespace infeed::tools
