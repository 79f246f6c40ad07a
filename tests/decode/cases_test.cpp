// The pictures of a folder decode, or fail, as its manifest.json says. The folder is INFEED_CASES_DIR, else the one
// given at build time; without either the tests are skipped.

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "decode/jpeg.h"
#include "infeed/decode/decode.h"

namespace infeed {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

std::vector<std::byte> read_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string text(std::istreambuf_iterator<char>(file), {});
  const auto* begin = reinterpret_cast<const std::byte*>(text.data());
  return {begin, begin + text.size()};
}

// The faults that a category of the manifest allows; anything may fail a file that need not decode.
bool category_allows(const std::string& category, DecodeFault fault) {
  static const std::map<std::string, std::vector<DecodeFault>> kAllowed = {
      {"empty", {DecodeFault::kEmpty}},
      {"truncated", {DecodeFault::kTruncated}},
      {"not_an_image", {DecodeFault::kNotAnImage}},
      {"bad_header", {DecodeFault::kBadHeader}},
      {"unsupported", {DecodeFault::kUnsupported}},
      {"too_large_or_truncated", {DecodeFault::kTooLarge, DecodeFault::kTruncated}}};
  const auto found = kAllowed.find(category);
  return found == kAllowed.end() || std::ranges::count(found->second, fault) > 0;
}

class CasesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const char* given = std::getenv("INFEED_CASES_DIR");
    folder_ = given != nullptr ? given : INFEED_DEFAULT_CASES_DIR;
    if (!fs::exists(folder_ / "manifest.json")) GTEST_SKIP() << "no manifest.json in '" << folder_.string() << "'";
    std::ifstream file(folder_ / "manifest.json");
    cases_ = Json::parse(file)["jpeg"];
  }

  void check_all(bool orient) {
    for (const auto& [name, wanted] : cases_.items()) {
      SCOPED_TRACE(name);
      check(read_file(folder_ / name), wanted, orient);
    }
  }

 private:
  static void check(const std::vector<std::byte>& bytes, const Json& wanted, bool orient) {
    const std::string expect = wanted["expect"];
    try {
      const Image image = decode_image(bytes, {.orient = orient});
      EXPECT_NE(expect, "error") << image.width << " x " << image.height << " instead of " << wanted["category"];
      const bool turned = orient && wanted.contains("oriented");
      if (expect.starts_with("ok")) check_pixels(image, turned ? wanted["oriented"] : wanted, wanted["tol"]);
    } catch (const DecodeError& error) {
      EXPECT_NE(expect, "ok") << error.what();
      const bool allowed = expect != "error" || category_allows(wanted["category"], error.fault());
      EXPECT_TRUE(allowed) << to_string(error.fault()) << " instead of " << wanted.value("category", "");
    }
  }

  static void check_pixels(const Image& image, const Json& wanted, int tolerance) {
    ASSERT_EQ(image.width, wanted["width"]);
    ASSERT_EQ(image.height, wanted["height"]);
    for (const auto& [place, point] : wanted["points"].items()) {
      const int x = point[0], y = point[1];
      for (int c = 0; c < 3; ++c) {
        const int got = image.pixels[static_cast<std::size_t>((y * image.width + x) * 3 + c)];
        EXPECT_NEAR(got, point[static_cast<std::size_t>(c + 2)].get<int>(), tolerance) << place << ", channel " << c;
      }
    }
  }

 protected:
  fs::path folder_;

 private:
  Json cases_;
};

TEST_F(CasesTest, DecodeAsTheManifestSaysWhenOrientationIsApplied) { check_all(true); }
TEST_F(CasesTest, DecodeAsTheManifestSaysWhenOrientationIsLeft) { check_all(false); }

/// Pixels of the lower right half in each direction, or the error's text.
std::string outcome(JpegSource& source, const std::vector<std::byte>& file, bool allow_truncated) {
  try {
    const StoredInfo info = source.open(file, {.allow_truncated = allow_truncated});
    PixelBuffer buffer;
    const int x = info.width / 2, y = info.height / 2;
    const PixelWindow got = source.decode({x, y, info.width - x, info.height - y}, 1, 1, buffer);
    std::string pixels;
    for (int row = 0; row < got.height; ++row)
      pixels.append(reinterpret_cast<const char*>(got.pixels + row * got.stride),
                    static_cast<std::size_t>(got.width) * 4);
    return pixels;
  } catch (const DecodeError& error) {
    return error.what();
  }
}

TEST_F(CasesTest, HaveTheOutcomeOfLibjpeg) {
  JpegSource ours, libjpegs(true);
  for (const fs::directory_entry& entry : fs::directory_iterator(folder_)) {
    const std::vector<std::byte> file = read_file(entry.path());
    if (entry.path().extension() != ".jpg" || file.empty()) continue;
    for (const bool lenient : {false, true})
      EXPECT_EQ(outcome(ours, file, lenient), outcome(libjpegs, file, lenient)) << entry.path() << lenient;
  }
}

}  // namespace
}  // namespace infeed
