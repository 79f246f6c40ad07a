// infeed doctor as a program: what it prints, and its exit status.

#include <gtest/gtest.h>

#include <string>

#include "infeed/base/state.h"
#include "support/command.h"
#include "support/temp_folder.h"

namespace infeed {
namespace {

using testing::Outcome;

Outcome run(const std::string& arguments, const char* redirection = " 2>&1") {
  return testing::run_command(std::string(INFEED_COMMAND) + " doctor " + arguments + redirection);
}

class DoctorCommandTest : public ::testing::Test {
 protected:
  void SetUp() override { folder.write("proc/sys/kernel/osrelease", "6.1.0\n"); }
  [[nodiscard]] std::string here() const { return "--root " + folder.str(); }
  testing::TempFolder folder;
};

TEST_F(DoctorCommandTest, ErrorsExitWithTwo) {
  folder.write("proc/sys/vm/overcommit_memory", "2\n");
  const Outcome outcome = run(here());
  EXPECT_EQ(outcome.status, 2) << outcome.text;
  EXPECT_NE(outcome.text.find("overcommit"), std::string::npos);
}

TEST_F(DoctorCommandTest, JsonHoldsFactsAndFindings) {
  folder.write("proc/sys/vm/overcommit_memory", "2\n");
  EXPECT_EQ(run(here() + " --csv").text.rfind("severity,topic,what,advice\n", 0), 0U);
  const State report = State::from_json(run(here() + " --json").text);
  EXPECT_EQ(report.get_state("facts").get_string("kernel"), "6.1.0");
  EXPECT_EQ(report.get_int("exit_code"), 2);
  EXPECT_FALSE(report.get_states("diagnoses").empty());
}

TEST_F(DoctorCommandTest, LooksAtALoadersFigures) {
  folder.write("stats.json", R"({"batches": 3})");
  EXPECT_NE(run(here() + " --stats " + folder.at("stats.json")).text.find("Too early to tell"), std::string::npos);
}

TEST_F(DoctorCommandTest, FiguresThatCannotBeReadExitWithThree) {
  EXPECT_EQ(run(here() + " --stats " + folder.at("none.json")).status, 3);
  EXPECT_EQ(run(here() + " --stats " + folder.str()).status, 3);
  folder.write("bad.json", "[");
  EXPECT_EQ(run(here() + " --stats " + folder.at("bad.json")).status, 3);
}

TEST_F(DoctorCommandTest, HelpShowsAnExample) {
  EXPECT_NE(run("--help").text.find("Example: infeed doctor"), std::string::npos);
}

TEST_F(DoctorCommandTest, WhatCannotBeLookedAtExitsWithThree) {
  EXPECT_EQ(run("--root " + folder.at("none")).status, 3);
  EXPECT_EQ(run("--no-such-option").status, 3);
}

TEST_F(DoctorCommandTest, OutputThatIsLostIsAFailure) {
  EXPECT_EQ(run(here() + " --json", " 2>/dev/null >&-").status, 3);
  EXPECT_NE(run(here(), " 2>&1 >/dev/full").text.find("standard output cannot be written"), std::string::npos);
}

}  // namespace
}  // namespace infeed
