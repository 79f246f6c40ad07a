#include "infeed/base/log.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace infeed {
namespace {

using Messages = std::vector<std::pair<LogLevel, std::string>>;

/// Gathers messages; leaves the log as it found it.
class LogTest : public ::testing::Test {
 protected:
  void SetUp() override {
    set_log_level(LogLevel::kTrace);
    set_log_sink([this](LogLevel level, std::string_view text) { messages.emplace_back(level, text); });
  }
  void TearDown() override {
    set_log_sink({});
    set_log_level(LogLevel::kWarning);
  }

  Messages messages;
};

TEST_F(LogTest, GivesTheSinkLevelAndText) {
  log(LogLevel::kInfo, "hello {} %s");
  EXPECT_EQ(messages, (Messages{{LogLevel::kInfo, "hello {} %s"}}));
}

TEST_F(LogTest, DropsWhatIsBelowTheLevel) {
  set_log_level(LogLevel::kError);
  log(LogLevel::kWarning, "dropped");
  log(LogLevel::kError, "kept");
  set_log_level(LogLevel::kOff);
  log(LogLevel::kError, "dropped");
  log(LogLevel::kOff, "no message has this level");
  EXPECT_EQ(messages.size(), 1U);
}

TEST_F(LogTest, WritesToStandardErrorWithoutASink) {
  set_log_sink({});
  ::testing::internal::CaptureStderr();
  log(LogLevel::kWarning, "low on {memory}");
  const std::string text = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(text.find("warning: low on {memory}\n"), std::string::npos) << text;
  EXPECT_NE(text.find(std::to_string(getpid())), std::string::npos) << text;
}

TEST_F(LogTest, LetsASinkLogAndReplaceItself) {
  set_log_sink([this](LogLevel, std::string_view text) {
    messages.emplace_back(LogLevel::kInfo, text);
    set_log_sink({});
    log(LogLevel::kTrace, "from within goes to standard error");
  });
  log(LogLevel::kInfo, "once");
  log(LogLevel::kTrace, "to standard error");
  EXPECT_EQ(messages.size(), 1U);
}

TEST_F(LogTest, SurvivesASinkThatThrows) {
  set_log_sink([](LogLevel, std::string_view) { throw std::runtime_error("disk full"); });
  EXPECT_THROW(log(LogLevel::kInfo, "x"), std::runtime_error);
  SetUp();
  log(LogLevel::kInfo, "y");
  EXPECT_EQ(messages.size(), 1U);
}

TEST_F(LogTest, CallsTheSinkOneAtATime) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([] {
      for (int k = 0; k < 500; ++k) log(LogLevel::kInfo, "message");
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(messages.size(), 2000U);
}

}  // namespace
}  // namespace infeed
