// infeed sweep, tune and bench as programs.

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>

#include "infeed/base/state.h"
#include "support/command.h"
#include "support/temp_folder.h"

namespace infeed {
namespace {

using testing::Outcome;

Outcome run(const std::string& arguments, const char* redirection = " 2>/dev/null") {
  return testing::run_command(std::string(INFEED_COMMAND) + " " + arguments + redirection);
}
Outcome errors_of(const std::string& arguments) {
  return testing::run_command(std::string(INFEED_COMMAND) + " " + arguments + " 2>&1 >/dev/null");
}

/// Ctrl-C as soon as it says `gate` on standard error; what it printed then.
Outcome interrupted_at(const std::string& gate, const std::string& arguments) {
  const testing::TempFolder folder;
  std::string command = "echo $$; exec " INFEED_COMMAND " ";
  command += arguments;
  command += " 2>&1 >";
  command += folder.at("out");
  FILE* pipe = popen(command.c_str(), "r");
  char line[4096];
  pid_t pid = 0;
  for (bool sent = false; fgets(line, sizeof line, pipe) != nullptr;) {
    if (pid == 0) pid = static_cast<pid_t>(std::stol(line));
    if (sent || std::string(line).find(gate) == std::string::npos) continue;
    kill(pid, SIGINT);
    sent = true;
  }
  const int status = WEXITSTATUS(pclose(pipe));
  std::ifstream file(folder.at("out"));
  return {status, {std::istreambuf_iterator<char>(file), {}}};
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
  EXPECT_EQ(run(few + " --svg -").text.rfind("<svg", 0), 0U);
}

TEST(SweepCommandTest, CtrlCKeepsTheRunsThatWereDone) {
  const Outcome outcome =
      interrupted_at("run 3 of ", "sweep --workers 1 2 --kinds thread --repetitions 1000000 --csv" + kQuick);
  EXPECT_EQ(outcome.status, 130);
  EXPECT_EQ(std::count(outcome.text.begin(), outcome.text.end(), '\n'), 3) << outcome.text;
}

TEST(SweepCommandTest, CtrlCEndsASearchInItsFirstTrial) {
  const Outcome outcome = interrupted_at("trial 1 of ", "tune --repetitions 1000000" + kQuick);
  EXPECT_EQ(outcome.status, 130);
  EXPECT_TRUE(outcome.text.empty()) << outcome.text;
}

TEST(SweepCommandTest, TuneSaysTheSettingAndItsReason) {
  const Outcome outcome = run("tune --max-workers 2 --trials 4 --json" + kQuick);
  EXPECT_EQ(outcome.status, 0) << outcome.text;
  EXPECT_GT(State::from_json(outcome.text).get_state("chosen").get_double("samples_per_s"), 0);
}

TEST(SweepCommandTest, TuneGivesCsvAndAPicture) {
  const std::string few = "tune --max-workers 2 --trials 3" + kQuick;
  EXPECT_EQ(run(few + " --csv").text.rfind("worker_kind,", 0), 0U);
  EXPECT_EQ(run(few + " --svg -").text.rfind("<svg", 0), 0U);
}

TEST(SweepCommandTest, ShowsItsProgressOnStandardError) {
  const Outcome outcome = errors_of("sweep --workers 1 --kinds thread --repetitions 2" + kQuick);
  EXPECT_EQ(outcome.text, "run 1 of 2: thread x 1 ...\nrun 2 of 2: thread x 1 ...\n");
}

TEST(SweepCommandTest, BenchMeasuresOneSettingOnASimulatedDevice) {
  const Outcome outcome = run("bench --workers 1 --repetitions 1 --device simulated --json" + kQuick);
  EXPECT_EQ(outcome.status, 0) << outcome.text;
  EXPECT_GT(State::from_json(outcome.text).get_double("transfer_share"), 0);
}

TEST(SweepCommandTest, NamesWhatItCannotDo) {
  const Outcome outcome = errors_of("sweep --kinds fibre" + kQuick);
  EXPECT_EQ(outcome.status, 1);
  EXPECT_NE(outcome.text.find("'fibre' is no kind of worker"), std::string::npos) << outcome.text;
}

TEST(CommandTest, NamesAWordThatIsNoCommandAndThoseThatAre) {
  EXPECT_EQ(errors_of("swep --workers 1").text,
            "infeed: 'swep' is no command. Did you mean sweep? There are prepare, doctor, sweep, tune, bench; "
            "`infeed --help` tells what they do.\n");
  EXPECT_EQ(errors_of("frobnicate").text.find("Did you mean"), std::string::npos);
  EXPECT_EQ(run("frobnicate").status, 1);
  EXPECT_NE(errors_of("").text.find("A subcommand is required"), std::string::npos);
}

TEST(SweepCommandTest, HelpShowsAnExample) {
  for (const char* command : {"sweep", "tune", "bench", "doctor", "prepare"})
    EXPECT_NE(run(std::string(command) + " --help").text.find("Example: infeed "), std::string::npos) << command;
}

TEST(SweepCommandTest, RefusesFiguresThatAreNone) {
  for (const char* option :
       {"--repetitions 0", "--step-ms nan", "--seconds -1", "--memory-limit -1", "--sample-kb 9223372036854775807"})
    EXPECT_NE(errors_of(std::string("bench ") + option).text.find(std::string(option).substr(0, 6)), std::string::npos);
  for (const char* option : {"--memory-budget-mb -1", "--memory-budget-mb nan", "--repetitions 0"})
    EXPECT_EQ(run(std::string("tune ") + option).status, 1) << option;
}

TEST(SweepCommandTest, RefusesAPictureWithoutAPlaceBeforeItMeasures) {
  const Outcome outcome = errors_of("sweep --svg /nowhere/a.svg" + kQuick);
  EXPECT_EQ(outcome.text,
            "infeed sweep: the picture cannot be written to /nowhere/a.svg: No such file or directory.\n");
}

TEST(SweepCommandTest, TellsThatItsHelpCouldNotBeWritten) {
  EXPECT_EQ(run("--help", " >/dev/full").status, 1);
  EXPECT_EQ(run("--help", " >/dev/null").status, 0);
}

TEST(SweepCommandTest, MeasuresWithAllStandardStreamsClosed) {
  EXPECT_EQ(run("bench --workers 1 --kind fork --repetitions 1" + kQuick, " >&- 2>&- <&-").status, 1);
}

TEST(SweepCommandTest, MeasuresThoughNobodySeesTheProgress) {
  const Outcome outcome = run("bench --workers 1 --repetitions 1 --csv" + kQuick, " 2>/dev/full");
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(std::count(outcome.text.begin(), outcome.text.end(), '\n'), 2) << outcome.text;
}

}  // namespace
}  // namespace infeed
