#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "infeed/base/log.h"

namespace infeed {
namespace {

TEST(LogFork, LetsAChildLogWhileAThreadOfTheParentDoes) {
  std::atomic<bool> stop = false;
  set_log_sink([](LogLevel, std::string_view) {});
  std::thread chatter([&] {
    while (!stop) log(LogLevel::kError, "parent");
  });
  for (int i = 0; i < 200; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(60);  // a deadlock ends the child, and the test sees it
      log(LogLevel::kError, "child");
      _exit(0);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  stop = true;
  chatter.join();
  set_log_sink({});
}

TEST(LogFork, LetsASinkFork) {
  set_log_sink([](LogLevel, std::string_view) {
    const pid_t child = fork();
    if (child == 0) _exit(0);
    int status = 0;
    waitpid(child, &status, 0);
  });
  log(LogLevel::kError, "fork");
  set_log_sink({});
}

}  // namespace
}  // namespace infeed
