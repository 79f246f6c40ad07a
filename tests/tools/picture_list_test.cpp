// Which pictures a folder or a tar file holds.

#include "tools/picture_list.h"

#include <gtest/gtest.h>

#include <cstring>

#include "infeed/base/error.h"
#include "support/temp_folder.h"

namespace infeed {
namespace {

using testing::TempFolder;

const std::vector<std::string> kJpeg{".jpg"};

/// A ustar member, header and data.
std::string member(const std::string& name, const std::string& data, char type = '0') {
  std::string block(512, '\0');
  const auto put = [&](std::size_t at, const std::string& text) { block.replace(at, text.size(), text); };
  char size[13];
  std::snprintf(size, sizeof size, "%011zo", data.size());
  put(0, name.substr(0, 100));
  put(124, size);
  block[156] = type;
  put(257, std::string("ustar\0"
                       "00",
                       8));
  put(148, "        ");
  unsigned sum = 0;
  for (const char c : block) sum += static_cast<unsigned char>(c);
  char checksum[8];
  std::snprintf(checksum, sizeof checksum, "%06o", sum);
  put(148, checksum);
  return block + data + std::string((512 - data.size() % 512) % 512, '\0');
}

const std::string kEnd(1024, '\0');

class TarTest : public ::testing::Test {
 protected:
  std::vector<Picture> pictures_of(const std::string& bytes) {
    folder.write("x.tar", bytes);
    return pictures_of_tar(folder.at("x.tar"), kJpeg);
  }
  std::string bytes_of(const Picture& picture) {
    std::vector<std::byte> buffer;
    const auto bytes = read_picture(picture, buffer).bytes;
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  TempFolder folder;
};

TEST_F(TarTest, ListsMembersThatArePictures) {
  const auto found = pictures_of(member("a/", "", '5') + member("a/1.jpg", "one") + member("a/1.txt", "label") +
                                 member("a/2.JPG", std::string(700, 'x')) + kEnd);
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].name, "a/1.jpg");
  EXPECT_EQ(bytes_of(found[0]), "one");
  EXPECT_EQ(bytes_of(found[1]), std::string(700, 'x'));
}

TEST_F(TarTest, TakesLongNamesOfBothKinds) {
  std::string name(150, 'n');
  name += ".jpg";
  const std::string pax = "164 path=" + name + "\n";
  const auto found = pictures_of(member("././@LongLink", name + '\0', 'L') + member(name, "gnu") +
                                 member("x", pax, 'x') + member("short.txt", "pax") + kEnd);
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].name, name);
  EXPECT_EQ(found[1].name, name);
  EXPECT_EQ(bytes_of(found[1]), "pax");
}

TEST_F(TarTest, RefusesWhatIsNoPlainTarFile) {
  const std::string good = member("1.jpg", std::string(900, 'x')) + member("2.jpg", "two") + kEnd;
  EXPECT_THROW(static_cast<void>(pictures_of("\x1f\x8b" + good)), DataError);
  EXPECT_THROW(static_cast<void>(pictures_of(good.substr(0, 800))), DataError);
  EXPECT_THROW(static_cast<void>(pictures_of(good.substr(0, 1600))), DataError);
  std::string damaged = good;
  damaged[1540] ^= 1;
  EXPECT_THROW(static_cast<void>(pictures_of(damaged)), DataError);
  EXPECT_THROW(static_cast<void>(pictures_of_tar(folder.at("none.tar"), kJpeg)), DataError);
}

TEST_F(TarTest, DoesWithoutTheEndBlocks) { EXPECT_EQ(pictures_of(member("1.jpg", "one")).size(), 1U); }

TEST(FolderTest, ListsPicturesAtAnyDepth) {
  const TempFolder folder;
  for (const char* name : {"b/z/1.jpg", "a/2.JPG", "0.jpg", "a/3.txt"}) folder.write(name, "x");
  std::vector<std::string> names;
  for (const Picture& picture : pictures_of_folder(folder.str(), kJpeg)) names.push_back(picture.name);
  EXPECT_EQ(names, (std::vector<std::string>{"0.jpg", "a/2.JPG", "b/z/1.jpg"}));
  EXPECT_THROW(static_cast<void>(pictures_of_folder(folder.at("none"), kJpeg)), ConfigError);
}

}  // namespace
}  // namespace infeed
