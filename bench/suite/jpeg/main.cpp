/// infeed-jpeg-bench: one of the questions J1, J3, J5 to J8; infeed-bench runs it and takes its lines over.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <map>
#include <string>

#include "rows.h"

namespace bench::jpeg {
namespace {

const std::map<std::string, void (*)(const Bed&, Report&)> kQuestions = {
    {"J1", entropy}, {"J3", evaluation}, {"J5", lighter}, {"J6", resize}, {"J7", large}, {"J8", progressive}};

int run(int argc, char** argv) {
  CLI::App app("One question about JPEG; medians of interleaved rounds of CPU.");
  Bed bed;
  std::string id = "J1", json;
  app.add_option("--only", id, "J1, J3, J5, J6, J7 or J8")->required()->check(CLI::IsMember(kQuestions));
  app.add_option("--images", bed.images, "A folder of JPEG files")->required();
  app.add_option("--rounds", bed.rounds, "Rounds a contestant")->check(CLI::Range(1, 1000))->capture_default_str();
  app.add_option("--json", json, "Writes the lines to this file, else they are printed");
  app.add_flag("--quick", bed.quick, "Little work: shows that all runs; the times mean nothing");
  CLI11_PARSE(app, argc, argv);
  Report report;
  kQuestions.at(id)(bed, report);
  if (json.empty()) {
    report.print(0, true);
  } else {
    report.write_json(json, this_machine());
  }
  return 0;
}

}  // namespace
}  // namespace bench::jpeg

int main(int argc, char** argv) {
  try {
    return bench::jpeg::run(argc, argv);
  } catch (const std::exception& error) {
    fmt::print(stderr, "infeed-jpeg-bench: {}\n", error.what());
    return 1;
  }
}
