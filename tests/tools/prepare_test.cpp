// infeed prepare: what it writes, what it leaves alone, and what it says.

#include "tools/prepare.h"

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <csignal>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "base/hash.h"
#include "dataset/index_cache.h"
#include "dataset/index_merge.h"
#include "decode/jpeg_maker.h"
#include "infeed/base/error.h"
#include "infeed/dataset/image_folder.h"
#include "support/command.h"
#include "support/temp_folder.h"
#include "tools/rewrite.h"

namespace infeed {
namespace {

using testing::Bytes;
using testing::JpegRecipe;
using testing::TempFolder;

std::string text_of(const Bytes& bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }
JpegRecipe recipe_of(std::uint64_t seed) {
  return {.width = 120, .height = 90, .sampling = {testing::Sampling{2, 2}}, .seed = seed};
}
std::string baseline(std::uint64_t seed) { return text_of(make_jpeg(recipe_of(seed))); }
std::string progressive(std::uint64_t seed) {
  JpegRecipe recipe = recipe_of(seed);
  recipe.progressive = true;
  return text_of(testing::with_exif(make_jpeg(recipe), {.orientation = 6}));
}

class PrepareTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (std::uint64_t i = 0; i < 6; ++i) data.write("a/" + std::to_string(i) + ".jpg", baseline(i));
    data.write("b/p.jpg", progressive(9));
  }
  PrepareSummary run(PrepareOptions options = {}) {
    if (options.path.empty()) options.path = data.str();
    if (options.index == "auto" && !options.path.ends_with(".tar")) options.index = index;
    return prepare(options, stop, [](auto, auto) {});
  }
  static std::string read(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  [[nodiscard]] std::int64_t num_complete(const std::vector<std::string>& names) const {
    std::vector<std::uint64_t> hashes;
    for (const std::string& name : names) hashes.push_back(hash64(name));
    return IndexCache::open(index, hashes)->num_complete();
  }
  [[nodiscard]] std::vector<std::string> entries(const std::string& folder) const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) names.push_back(entry.path().filename());
    return names;
  }

  TempFolder data, work;
  std::string index = work.at("x.index"), out = work.str() + "/out";
  std::atomic<bool> stop{false};
};

TEST_F(PrepareTest, IndexesAFolder) {
  const PrepareSummary summary = run();
  EXPECT_EQ(summary.done, 7);
  EXPECT_EQ(summary.none, 1);
  EXPECT_TRUE(summary.failed.empty() && !summary.interrupted);
  EXPECT_EQ(summary.bytes_after, std::filesystem::file_size(index));
  EXPECT_GT(summary.decode_us_before, 0);
  EXPECT_EQ(entries(work.str()), std::vector<std::string>{"x.index"});
}

TEST_F(PrepareTest, LeavesImageFolderNothingToLearn) {
  static_cast<void>(run());
  const ImageFolder dataset(data.str(), {.index_cache = index});
  EXPECT_EQ(entries(work.str()), std::vector<std::string>{"x.index"}) << "no part was begun";
}

TEST_F(PrepareTest, DoesOnlyWhatIsNewOrChanged) {
  static_cast<void>(run());
  EXPECT_EQ(run().unchanged, 7);
  data.write("a/new.jpg", baseline(20));
  data.write("a/0.jpg", baseline(21));
  const PrepareSummary summary = run();
  EXPECT_EQ(summary.done, 2);
  EXPECT_EQ(summary.none, 1) << "of all pictures";
  EXPECT_EQ(run({.verify = true}).unchanged, 8);
}

TEST_F(PrepareTest, WritesTheIndexThatALinkMeans) {
  static_cast<void>(run());
  const std::string link = data.at("link.index");
  std::filesystem::create_symlink(index, link);
  data.write("a/new.jpg", baseline(20));
  EXPECT_EQ(run({.index = link}).done, 1);
  EXPECT_TRUE(std::filesystem::is_symlink(link));
  EXPECT_EQ(run().unchanged, 8);
  EXPECT_TRUE(std::filesystem::path(IndexCache::open("none/x", {})->path()).is_absolute());
}

TEST_F(PrepareTest, NamesBadFilesAndDoesTheRest) {
  data.write("a/cut.jpg", baseline(3).substr(0, 900));
  data.write("a/text.jpg", "no picture");
  const PrepareSummary summary = run();
  EXPECT_EQ(summary.done, 7);
  ASSERT_EQ(summary.failed.size(), 2U);
  EXPECT_EQ(summary.failed[0].file, data.str() + "/a/cut.jpg");
  EXPECT_NE(summary.failed[1].error.find("not an image"), std::string::npos);
}

TEST_F(PrepareTest, GoesOnWhereItWasInterrupted) {
  PrepareOptions options{.path = data.str(), .index = index, .threads = 1};
  const PrepareSummary first = prepare(options, stop, [this](std::int64_t done, auto) { stop = done == 3; });
  EXPECT_TRUE(first.interrupted);
  EXPECT_EQ(first.done, 3);
  stop = false;
  const PrepareSummary second = run();
  EXPECT_EQ(second.unchanged, 3);
  EXPECT_EQ(second.done, 4);
}

TEST_F(PrepareTest, SaysWhereTheIndexCannotBeWritten) {
  EXPECT_THROW(static_cast<void>(run({.index = "/proc/none/x.index"})), DataError);
  EXPECT_THROW(static_cast<void>(run({.path = data.str() + "/none"})), ConfigError);
  EXPECT_THROW(static_cast<void>(run({.path = work.str()})), ConfigError) << "no pictures";
}

TEST_F(PrepareTest, IndexesATarFileBesideIt) {
  const std::string tar = work.at("shard.tar");
  ASSERT_EQ(std::system(("tar cf " + tar + " -C " + data.str() + " a b").c_str()), 0);
  EXPECT_EQ(run({.path = tar}).done, 7);
  EXPECT_EQ(run({.path = tar}).unchanged, 7);
  const auto cache = IndexCache::open(work.at("shard.idx"), {hash64(std::string_view("a/3.jpg"))});
  IndexRecord record;
  ASSERT_TRUE(cache->read(0, record));
  EXPECT_TRUE(record.rows.is_complete());
  EXPECT_EQ(read(tar).substr(record.offset, record.key.file_bytes), baseline(3));
  EXPECT_EQ(record.width, 120U);
}

TEST_F(PrepareTest, TranscodesOnlyWhatIsNotBaseline) {
  const std::string before = read(data.at("b/p.jpg"));
  const PrepareSummary summary = run({.out = out, .transcode = true, .verify = true});
  EXPECT_EQ(summary.rewritten, 1);
  EXPECT_EQ(entries(out), std::vector<std::string>{"b"});
  const std::string made = read(out + "/b/p.jpg");
  EXPECT_FALSE(kind_of(std::as_bytes(std::span(made))).progressive);
  EXPECT_NE(made.find("Exif"), std::string::npos);
  EXPECT_EQ(decode_image(std::as_bytes(std::span(made))).pixels, decode_image(std::as_bytes(std::span(before))).pixels);
  EXPECT_EQ(read(data.at("b/p.jpg")), before);
  EXPECT_EQ(run({.out = out, .transcode = true}).rewritten, 0) << "done before";
}

TEST_F(PrepareTest, CopiesTheRestWhereAsked) {
  static_cast<void>(run({.out = out, .transcode = true, .copy_rest = true}));
  EXPECT_EQ(read(out + "/a/2.jpg"), baseline(2));
  EXPECT_EQ(entries(out + "/a").size(), 6U);
}

TEST_F(PrepareTest, AddsRestartRowsToLargePicturesOnly) {
  JpegRecipe large = recipe_of(4);
  large.width = 1200;
  large.height = 1000;
  data.write("b/large.jpg", text_of(make_jpeg(large)));
  EXPECT_EQ(run({.out = out, .restart_megapixels = 1, .verify = true}).rewritten, 1);
  const std::string made = read(out + "/b/large.jpg");
  EXPECT_NE(made.find("\xFF\xDD"), std::string::npos);
  EXPECT_TRUE(same_coefficients(make_jpeg(large), std::as_bytes(std::span(made))));
}

TEST_F(PrepareTest, ShrinksToAShorterSide) {
  EXPECT_EQ(run({.out = out, .shorter_side = 45}).rewritten, 7);
  const std::string made = read(out + "/a/0.jpg"), turned = read(out + "/b/p.jpg");
  const Image image = decode_image(std::as_bytes(std::span(made)));
  EXPECT_EQ(image.height, 45);
  EXPECT_EQ(image.width, 60);
  EXPECT_EQ(decode_image(std::as_bytes(std::span(turned))).width, 45);
}

TEST_F(PrepareTest, KnowsOtherCoefficientsFromTheSame) {
  EXPECT_TRUE(same_coefficients(make_jpeg(recipe_of(1)), recode(make_jpeg(recipe_of(1)), true)));
  EXPECT_FALSE(same_coefficients(make_jpeg(recipe_of(1)), make_jpeg(recipe_of(2))));
}

TEST_F(PrepareTest, LeavesACutProgressiveFileOut) {
  data.write("b/cut.jpg", progressive(3).substr(0, 2500));
  const PrepareSummary summary = run({.out = out, .transcode = true});
  ASSERT_EQ(summary.failed.size(), 1U);
  EXPECT_FALSE(std::filesystem::exists(out + "/b/cut.jpg"));
}

TEST_F(PrepareTest, RefusesToWriteIntoItsSource) {
  EXPECT_THROW(static_cast<void>(run({.out = data.str(), .transcode = true})), ConfigError);
  EXPECT_THROW(static_cast<void>(run({.out = data.str() + "/sub", .transcode = true})), ConfigError);
  EXPECT_THROW(static_cast<void>(run({.transcode = true})), ConfigError);
}

/// The command's exit status; its standard output in `text`.
int command(const std::string& arguments, std::string& text) {
  testing::Outcome outcome =
      testing::run_command(std::string(INFEED_COMMAND) + " prepare " + arguments + " 2>/dev/null");
  text = std::move(outcome.text);
  return outcome.status;
}

TEST_F(PrepareTest, IsACommandWithJsonAndExitStatus) {
  std::string text;
  EXPECT_EQ(command(data.str() + " --json --index " + index, text), 0);
  const auto json = nlohmann::json::parse(text);
  EXPECT_EQ(json[0]["done"], 7);
  data.write("a/cut.jpg", baseline(3).substr(0, 900));
  EXPECT_EQ(command(data.str() + " --index " + index, text), 2);
  EXPECT_NE(text.find("1 failed"), std::string::npos);
  EXPECT_EQ(command(data.str() + "/none --index " + index, text), 1);
  EXPECT_EQ(command(data.str() + " --restart-rows", text), 1) << "in place";
}

TEST_F(PrepareTest, GoesOnWithTheNextPathWhereOneFails) {
  const std::string tar = work.at("shard.tar"), cut = work.at("cut.tar");
  ASSERT_EQ(std::system(("tar cf " + tar + " -C " + data.str() + " a b").c_str()), 0);
  work.write("cut.tar", read(tar).substr(0, 5000));
  std::string text;
  EXPECT_EQ(command(cut + ' ' + tar + " --json", text), 2);
  const auto json = nlohmann::json::parse(text);
  EXPECT_NE(json[0]["error"].get<std::string>().find("cut"), std::string::npos);
  EXPECT_EQ(json[1]["done"], 7);
  EXPECT_EQ(command(cut, text), 1);
}

TEST_F(PrepareTest, NamesFilesOfAnyBytes) {
  data.write("a/\xFF\n.jpg", "no picture");
  std::string text;
  EXPECT_EQ(command(data.str() + " --json --index " + index, text), 2);
  EXPECT_EQ(nlohmann::json::parse(text)[0]["failed"].size(), 1U);
}

TEST_F(PrepareTest, FailsWhereItsSummaryIsLost) {
  std::string text;
  EXPECT_EQ(command(data.str() + " --json --index " + index + " >/dev/full", text), 1);
}

TEST_F(PrepareTest, TakesOneIndexForOneFolder) {
  std::string text;
  EXPECT_EQ(command(data.str() + ' ' + data.str() + " --index " + index, text), 1);
  EXPECT_EQ(command(data.str() + " --index ''", text), 1);
  EXPECT_EQ(command(data.str() + " --no-such-option", text), 1);
  data.write("x.tar", "");
  EXPECT_THROW(static_cast<void>(run({.path = data.at("x.tar"), .index = "x.idx"})), ConfigError);
}

TEST_F(PrepareTest, LeavesAFolderToTheRunThatWritesToIt) {
  std::filesystem::create_directories(out);
  auto other = FolderLock::take(out);
  EXPECT_THROW(static_cast<void>(run({.out = out, .transcode = true})), DataError);
  other.reset();
  EXPECT_EQ(run({.out = out, .transcode = true}).rewritten, 1);
}

TEST_F(PrepareTest, RewritesFilesFromBefore1970) {
  ASSERT_EQ(std::system(("touch -d '1960-01-01 00:00:00.25' " + data.at("b/p.jpg")).c_str()), 0);
  EXPECT_EQ(run({.out = out, .transcode = true}).rewritten, 1);
  EXPECT_EQ(std::filesystem::last_write_time(out + "/b/p.jpg"), std::filesystem::last_write_time(data.at("b/p.jpg")));
  EXPECT_EQ(run({.out = out, .transcode = true}).rewritten, 0);
}

TEST_F(PrepareTest, IndexesAFolderWithTheLongestName) {
  data.write(std::string(255, 'x') + "/a/0.jpg", baseline(1));
  setenv("XDG_CACHE_HOME", work.str().c_str(), 1);
  const PrepareOptions options{.path = data.at(std::string(255, 'x'))};
  EXPECT_EQ(prepare(options, stop, [](auto, auto) {}).done, 1);
}

TEST_F(PrepareTest, RewritesFilesWithTheLongestNames) {
  const std::string name = std::string(251, 'x') + ".jpg";
  data.write("a/" + name, progressive(8));
  EXPECT_EQ(run({.out = out, .transcode = true}).rewritten, 2);
  EXPECT_EQ(entries(out + "/a"), std::vector<std::string>{name});
}

// A kill leaves a part, which the next run takes over.
TEST_F(PrepareTest, KeepsWhatAKilledRunDid) {
  const pid_t child = fork();
  if (child == 0) {
    const PrepareOptions options{.path = data.str(), .index = index, .threads = 1};
    static_cast<void>(prepare(options, stop, [](std::int64_t done, auto) {
      if (done == 4) raise(SIGKILL);
    }));
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(run().unchanged, 4);
  EXPECT_EQ(entries(work.str()), std::vector<std::string>{"x.index"});
}

}  // namespace
}  // namespace infeed
