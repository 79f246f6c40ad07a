#include "dataset/file_list.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <random>

#include "infeed/base/error.h"
#include "support/temp_folder.h"

namespace infeed {
namespace {

class FileListTest : public ::testing::Test {
 protected:
  void touch(const std::string& name) { folder.write(name, ""); }
  FileList scan() { return FileList::scan(folder.str(), extensions); }
  std::vector<std::string> paths() {
    const FileList list = scan();
    std::vector<std::string> paths;
    for (std::int64_t i = 0; i < list.size(); ++i) paths.emplace_back(list.path(i));
    return paths;
  }
  /// The text of the ConfigError that scanning gives.
  std::string refusal() {
    try {
      static_cast<void>(scan());
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "no ConfigError";
  }
  testing::TempFolder folder;
  std::vector<std::string> extensions{".jpg", ".png"};
};

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST_F(FileListTest, SortsClassesFoldersAndFilesBytewise) {
  for (const char* name : {"b/2.jpg", "b/10.jpg", "b/a/z.jpg", "b/a-c/0.jpg", "b/a/c/0.jpg", "B/x.png", "ä/1.jpg"})
    touch(name);
  EXPECT_EQ(paths(), (std::vector<std::string>{"B/x.png", "b/10.jpg", "b/2.jpg", "b/a/z.jpg", "b/a-c/0.jpg",
                                               "b/a/c/0.jpg", "ä/1.jpg"}));
}

TEST_F(FileListTest, LabelsFilesByTheirClass) {
  for (const char* name : {"a/1.jpg", "a/2.jpg", "b/1.jpg", "c/1.jpg", "c/2.jpg"}) touch(name);
  const FileList list = scan();
  std::vector<std::int64_t> labels;
  for (std::int64_t i = 0; i < list.size(); ++i) labels.push_back(list.label(i));
  EXPECT_EQ(labels, (std::vector<std::int64_t>{0, 0, 1, 2, 2}));
  EXPECT_EQ(list.num_classes(), 3);
  EXPECT_EQ(list.class_name(2), "c");
}

TEST_F(FileListTest, TakesListedExtensionsInAnyCase) {
  for (const char* name : {"a/1.JPG", "a/2.jPg", "a/3.jpeg", "a/4.txt", "a/jpg", "a/.png"}) touch(name);
  EXPECT_EQ(paths(), (std::vector<std::string>{"a/.png", "a/1.JPG", "a/2.jPg"}));
}

TEST_F(FileListTest, IgnoresFilesBesideTheClasses) {
  touch("a/1.jpg");
  touch("stray.jpg");
  EXPECT_EQ(paths(), (std::vector<std::string>{"a/1.jpg"}));
}

TEST_F(FileListTest, FollowsLinksToFoldersAndFiles) {
  touch("a/1.jpg");
  const testing::TempFolder other;
  other.write("x/7.jpg", "");
  ASSERT_EQ(symlink(other.str().c_str(), folder.at("b").c_str()), 0);
  ASSERT_EQ(symlink("nowhere", folder.at("a/2.jpg").c_str()), 0);
  EXPECT_EQ(paths(), (std::vector<std::string>{"a/1.jpg", "a/2.jpg", "b/x/7.jpg"}));
}

TEST_F(FileListTest, RefusesLinksToAFolderAbove) {
  touch("a/1.jpg");
  ASSERT_EQ(symlink(".", folder.at("a/again").c_str()), 0);
  EXPECT_TRUE(has(refusal(), "a/again")) << refusal();
}

TEST_F(FileListTest, RefusesARootWithoutClasses) {
  touch("1.jpg");
  EXPECT_TRUE(has(refusal(), "one a class")) << refusal();
}

TEST_F(FileListTest, NamesEveryClassWithoutFiles) {
  touch("a/1.jpg");
  touch("b/1.txt");
  touch("c/d/1.gif");
  EXPECT_TRUE(has(refusal(), "b, c") && has(refusal(), ".jpg, .png")) << refusal();
}

TEST_F(FileListTest, NamesFoldersThatCannotBeRead) {
  std::filesystem::remove_all(folder.str());
  EXPECT_TRUE(has(refusal(), folder.str()) && has(refusal(), "No such file")) << refusal();
  std::ofstream(folder.str()) << "a file";
  EXPECT_TRUE(has(refusal(), "Not a directory")) << refusal();
  if (geteuid() == 0) return;  // root reads everything
  std::filesystem::remove(folder.str());
  touch("a/1.jpg");
  std::filesystem::permissions(folder.at("a"), std::filesystem::perms::none);
  EXPECT_TRUE(has(refusal(), "Permission denied")) << refusal();
  std::filesystem::permissions(folder.at("a"), std::filesystem::perms::owner_all);
}

TEST_F(FileListTest, CrossesAsOneBlock) {
  for (const char* name : {"a/1.jpg", "b/2.jpg"}) touch(name);
  const FileList list = scan();
  const FileList again = FileList::view(list.block(), nullptr);
  EXPECT_EQ(again.path(1), "b/2.jpg");
  EXPECT_EQ(again.label(1), 1);
  EXPECT_EQ(again.digest(), list.digest());
}

TEST_F(FileListTest, DigestsDifferBetweenLists) {
  touch("a/1.jpg");
  const std::uint64_t before = scan().digest();
  std::filesystem::rename(folder.at("a/1.jpg"), folder.at("a/2.jpg"));
  EXPECT_NE(scan().digest(), before);
}

TEST_F(FileListTest, SurvivesDamagedBlocks) {
  for (const char* name : {"a/1.jpg", "b/2.jpg"}) touch(name);
  const FileList list = scan();
  std::mt19937 random(3);
  for (int round = 0; round < 5000; ++round) {
    std::vector<std::uint64_t> words((list.block().size() + 7) / 8);
    std::memcpy(words.data(), list.block().data(), list.block().size());
    auto* bytes = reinterpret_cast<std::byte*>(words.data());
    bytes[random() % list.block().size()] = static_cast<std::byte>(random());
    try {
      const FileList damaged = FileList::view({bytes, list.block().size() - random() % 2}, nullptr);
      for (std::int64_t i = 0; i < damaged.size(); ++i) static_cast<void>(std::string(damaged.path(i)));
    } catch (const ConfigError&) {
    }
  }
}

}  // namespace
}  // namespace infeed
