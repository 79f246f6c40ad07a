// The demo as its user runs it, with --quick.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <thread>

#include "support/processes.h"
#include "support/temp_folder.h"

namespace {

using infeed::testing::eventually;
using infeed::testing::TempFolder;
using Json = nlohmann::json;
using namespace std::chrono_literals;

std::string read_file(const std::string& path) {
  std::ifstream file(path);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

/// infeed-demo in a folder and a process group of its own; stdout and stderr go to `log`.
class Demo {
 public:
  Demo(const std::string& folder, std::vector<std::string> arguments) : log_(folder + "/log") {
    arguments.insert(arguments.begin(), DEMO_PATH);
    std::vector<char*> words;
    for (std::string& argument : arguments) words.push_back(argument.data());
    words.push_back(nullptr);
    std::filesystem::remove(log_);  // what an earlier run said
    pid_ = fork();
    setpgid(pid_, pid_);  // by both, so that the group is there when either goes on
    if (pid_ != 0) return;
    if (chdir(folder.c_str()) != 0 || freopen(log_.c_str(), "w", stdout) == nullptr) _exit(126);
    dup2(STDOUT_FILENO, STDERR_FILENO);
    execv(DEMO_PATH, words.data());
    _exit(127);
  }

  [[nodiscard]] int exit_code() const {
    int status = 0;
    waitpid(pid_, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }
  [[nodiscard]] std::string output() const { return read_file(log_); }
  [[nodiscard]] bool says(const std::string& text) const { return output().find(text) != std::string::npos; }
  void wait_until_it_says(const std::string& text) const {
    while (!says(text) && !has_ended()) std::this_thread::sleep_for(20ms);
  }
  void interrupt_all() const { kill(-pid_, SIGINT); }  // as a terminal does for Ctrl-C
  [[nodiscard]] bool left_processes() const { return kill(-pid_, 0) == 0; }

 private:
  [[nodiscard]] bool has_ended() const {
    siginfo_t info{};
    return waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid != 0;
  }

  std::string log_;
  pid_t pid_ = -1;
};

/// One quick run, looked at by several tests.
class DemoTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder = new TempFolder;
    const Demo demo(folder->str(), {"--quick", "--out", "figures/demo.json"});
    exit_code = demo.exit_code();
    output = demo.output();
    const std::string text = read_file(folder->at("figures/demo.json"));
    json = new Json(Json::parse(text.empty() ? "{}" : text));
  }
  static void TearDownTestSuite() {
    delete json;
    delete folder;
  }
  static inline TempFolder* folder = nullptr;
  static inline Json* json = nullptr;
  static inline int exit_code = -1;
  static inline std::string output;
};

void expect_positive(const Json& object, const std::vector<std::string>& keys) {
  for (const std::string& key : keys) EXPECT_GT(object.value(key, -1.0), 0.0) << key << " in " << object;
}

void expect_share(const Json& object, const std::string& key) {
  EXPECT_GE(object.value(key, -1.0), 0.0) << key << " in " << object;
  EXPECT_LE(object.value(key, -1.0), 1.0) << key << " in " << object;
}

TEST_F(DemoTest, EndsWell) { EXPECT_EQ(exit_code, 0) << output; }

TEST_F(DemoTest, TellsHowTheTrainingWent) {
  expect_share(*json, "validation_accuracy");
  ASSERT_EQ(json->at("epochs").size(), 1U);
  const Json& epoch = json->at("epochs")[0];
  expect_positive(epoch, {"loss", "samples_per_s", "seconds"});
  expect_share(epoch, "waited_share");
  EXPECT_EQ(epoch.at("accuracy"), json->at("validation_accuracy"));
  expect_positive(*json, {"peak_memory_mb"});
}

TEST_F(DemoTest, MeasuresEachKindOfWorker) {
  std::vector<std::string> kinds;
  for (const Json& row : json->at("sweep")) {
    kinds.push_back(row.at("kind").get<std::string>());
    EXPECT_EQ(row.at("workers"), kinds.back() == "inline" ? 0 : 2);
    expect_positive(row, {"samples_per_s", "cpu_us_per_sample", "pss_mb", "first_batch_ms"});
    expect_share(row, "utilisation");
    expect_share(row, "others_share");
  }
  EXPECT_EQ(kinds, (std::vector<std::string>{"inline", "thread", "fork", "spawn"}));
}

TEST_F(DemoTest, RecommendsARowOfTheSweep) {
  const Json& recommended = json->at("recommended");
  bool found = false;
  for (const Json& row : json->at("sweep")) {
    found |= row.at("kind") == recommended.at("kind") && row.at("workers") == recommended.at("workers");
  }
  EXPECT_TRUE(found) << recommended;
  EXPECT_NE(output.find(recommended.at("why").get<std::string>()), std::string::npos);
}

TEST_F(DemoTest, SaysOnWhichMachineItRan) {
  const Json& machine = json->at("machine");
  expect_positive(machine, {"cpus", "memory_gib"});
  for (const char* key : {"cpu", "kernel", "compiler", "version"}) EXPECT_NE(machine.value(key, ""), "") << key;
}

TEST_F(DemoTest, UsesTheImagesOfAnEarlierRunAndWritesATrace) {
  const Demo again(folder->str(), {"--quick", "--no-sweep", "--out", "again.json", "--trace", "trace.json"});
  EXPECT_EQ(again.exit_code(), 0) << again.output();
  EXPECT_TRUE(again.says("from an earlier run")) << again.output();
  EXPECT_TRUE(Json::parse(read_file(folder->at("again.json"))).at("sweep").empty());
  EXPECT_FALSE(Json::parse(read_file(folder->at("trace.json"))).at("traceEvents").empty());
}

TEST_F(DemoTest, EndsAtCtrlCWithoutALeftover) {
  const Demo demo(folder->str(), {"--quick", "--epochs", "100", "--out", "never.json"});
  demo.wait_until_it_says("epoch  ");
  demo.interrupt_all();
  EXPECT_EQ(demo.exit_code(), 130) << demo.output();
  EXPECT_TRUE(eventually([&] { return !demo.left_processes(); }));
  EXPECT_FALSE(std::filesystem::exists(folder->at("never.json")));
}

TEST_F(DemoTest, RefusesAnImpossiblePlaceForItsFiguresAtOnce) {
  const Demo demo(folder->str(), {"--quick", "--out", "/proc/nowhere/demo.json"});
  EXPECT_EQ(demo.exit_code(), 1);
  EXPECT_TRUE(demo.says("choose another with --out")) << demo.output();
  EXPECT_FALSE(demo.says("Training")) << demo.output();
}

TEST_F(DemoTest, LeavesAFolderOfSomebodyElseAlone) {
  folder->write("mine/notes.txt", "keep");
  const Demo demo(folder->str(), {"--quick", "--data", "mine"});
  EXPECT_EQ(demo.exit_code(), 1);
  EXPECT_TRUE(demo.says("not an image set")) << demo.output();
  EXPECT_EQ(read_file(folder->at("mine/notes.txt")), "keep");
}

}  // namespace
