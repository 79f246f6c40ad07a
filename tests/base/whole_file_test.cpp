#include "base/whole_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <iterator>

#include "base/descriptor.h"
#include "infeed/base/error.h"
#include "support/temp_folder.h"

namespace infeed {
namespace {

namespace fs = std::filesystem;
using testing::TempFolder;

std::string read(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::size_t files_in(const TempFolder& folder) {
  return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder.str()), fs::directory_iterator()));
}

TEST(WholeFile, ReplacesWhatWasThere) {
  const TempFolder folder;
  folder.write("a", "a longer one");
  write_whole_file(folder.at("a"), "new", "it");
  EXPECT_EQ(read(folder.at("a")), "new");
  EXPECT_EQ(files_in(folder), 1u);
}

TEST(WholeFile, WritesToAPipeAndLeavesItAPipe) {
  const TempFolder folder;
  const std::string path = folder.at("pipe");
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  const Descriptor reader(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  write_whole_file(path, "text", "it");
  char text[8] = {};
  EXPECT_EQ(::read(reader.fd(), text, sizeof(text)), 4);
  EXPECT_TRUE(fs::is_fifo(path));
  EXPECT_EQ(files_in(folder), 1u);
}

TEST(WholeFile, FollowsLinksAndLeavesThemLinks) {
  const TempFolder folder;
  folder.write("real", "old");
  fs::create_symlink(folder.at("real"), folder.at("link"));
  write_whole_file(folder.at("link"), "new", "it");
  EXPECT_TRUE(fs::is_symlink(folder.at("link")));
  EXPECT_EQ(read(folder.at("real")), "new");
}

TEST(WholeFile, LeavesNothingWhereItCannotBeWritten) {
  const TempFolder folder;
  fs::create_directory(folder.at("folder"));
  EXPECT_THROW(write_whole_file(folder.at("folder"), "text", "it"), DataError);
  EXPECT_THROW(write_whole_file(folder.str() + "/nowhere/a", "text", "it"), DataError);
  EXPECT_EQ(files_in(folder), 1u);
}

TEST(WholeFile, TellsBeforehandWhereItCannotBeWritten) {
  const TempFolder folder;
  EXPECT_NO_THROW(check_whole_file(folder.at("a"), "it"));
  EXPECT_THROW(check_whole_file(folder.str(), "it"), DataError);
  EXPECT_THROW(check_whole_file(folder.str() + "/nowhere/a", "it"), DataError);
  EXPECT_EQ(files_in(folder), 0u);
}

}  // namespace
}  // namespace infeed
