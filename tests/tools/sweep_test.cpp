// infeed sweep, tune and bench as programs.

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdio>
#include <string>

#include "infeed/base/state.h"

namespace infeed {
namespace {

struct Outcome {
  int status = -1;
  std::string text;
};

Outcome run(const std::string& arguments) {
  Outcome outcome;
  FILE* pipe = popen((std::string(INFEED_COMMAND) + " " + arguments + " 2>&1").c_str(), "r");
  char buffer[4096];
  for (std::size_t got = 0; (got = fread(buffer, 1, sizeof buffer, pipe)) > 0;) outcome.text.append(buffer, got);
  outcome.status = WEXITSTATUS(pclose(pipe));
  return outcome;
}

const std::string kQuick = " --samples 400 --cost-us 20 --sample-kb 1 --batch-size 4 --step-ms 0.2 --seconds 0.02";

TEST(SweepCommandTest, PrintsATableAndARecommendation) {
  const Outcome outcome = run("sweep --workers 0 1 --kinds thread --repetitions 1" + kQuick);
  EXPECT_EQ(outcome.status, 0) << outcome.text;
  EXPECT_NE(outcome.text.find("Recommended: "), std::string::npos) << outcome.text;
}

TEST(SweepCommandTest, GivesJsonCsvAndAPicture) {
  const std::string few = "sweep --workers 1 2 --kinds thread --repetitions 1" + kQuick;
  EXPECT_EQ(State::from_json(run(few + " --json").text).get_states("rows").size(), 2U);
  EXPECT_EQ(run(few + " --csv").text.rfind("worker_kind,", 0), 0U);
  EXPECT_NE(run(few + " --picture -").text.find("</svg>"), std::string::npos);
}

TEST(SweepCommandTest, TuneSaysTheSettingAndItsReason) {
  const Outcome outcome = run("tune --max-workers 2 --trials 4 --json" + kQuick);
  EXPECT_EQ(outcome.status, 0) << outcome.text;
  EXPECT_GT(State::from_json(outcome.text).get_state("chosen").get_double("samples_per_s"), 0);
}

TEST(SweepCommandTest, BenchMeasuresOneSettingOnASimulatedDevice) {
  const Outcome outcome = run("bench --workers 1 --repetitions 1 --device simulated --json" + kQuick);
  EXPECT_EQ(outcome.status, 0) << outcome.text;
  EXPECT_GT(State::from_json(outcome.text).get_double("transfer_share"), 0);
}

TEST(SweepCommandTest, NamesWhatItCannotDo) {
  const Outcome outcome = run("sweep --kinds fibre" + kQuick);
  EXPECT_EQ(outcome.status, 1);
  EXPECT_NE(outcome.text.find("'fibre' is no kind of worker"), std::string::npos) << outcome.text;
}

TEST(SweepCommandTest, HelpShowsAnExample) {
  for (const char* command : {"sweep", "tune", "bench"})
    EXPECT_NE(run(std::string(command) + " --help").text.find("Example: infeed "), std::string::npos) << command;
}

}  // namespace
}  // namespace infeed
