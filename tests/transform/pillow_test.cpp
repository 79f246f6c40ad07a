// Results against Pillow's, from pillow_golden.bin (written by pillow_golden.py).

#include <cmath>
#include <fstream>
#include <iterator>
#include <stdexcept>

#include "transform/picture.h"

namespace infeed::testing {
namespace {

struct Golden {
  int width = 0, height = 0, seed = 0;
  std::vector<std::array<int, 5>> ops;
  int out_width = 0, out_height = 0;
  std::vector<std::uint8_t> rgb;
};

class GoldenFile {
 public:
  GoldenFile() {
    std::ifstream in(INFEED_TRANSFORM_TESTS "/pillow_golden.bin", std::ios::binary);
    bytes_.assign(std::istreambuf_iterator<char>(in), {});
    if (bytes_.size() < 4) throw std::runtime_error("pillow_golden.bin is missing");
  }

  std::vector<Golden> read() {
    std::vector<Golden> all(static_cast<std::size_t>(next()));
    for (Golden& g : all) {
      g.width = next(), g.height = next(), g.seed = next();
      g.ops.resize(static_cast<std::size_t>(next()));
      for (auto& op : g.ops)
        for (int& value : op) value = next();
      g.out_width = next(), g.out_height = next();
      g.rgb.resize(static_cast<std::size_t>(g.out_width * g.out_height * 3));
      std::memcpy(g.rgb.data(), bytes_.data() + at_, g.rgb.size());
      at_ += g.rgb.size();
    }
    return all;
  }

 private:
  int next() {
    std::int32_t value;
    std::memcpy(&value, bytes_.data() + at_, sizeof value);
    at_ += sizeof value;
    return value;
  }
  std::string bytes_;
  std::size_t at_ = 0;
};

FusedPlan plan_of(const Golden& golden) {
  PlanBuilder plan(golden.width, golden.height);
  for (const auto& [code, a, b, c, d] : golden.ops) {
    if (code == 0) plan.crop(a, b, c, d);
    if (code == 1) plan.resize(a, b);
    if (code == 2) plan.resize(Resize{.height = a, .width = 0});
    if (code == 3) plan.center_crop({.height = a, .width = b});
    if (code == 4) plan.flip();
  }
  return plan.finish();
}

struct Difference {
  int most = 0;
  double mean = 0;
};

Difference difference(const std::vector<std::uint8_t>& a, const std::vector<std::uint8_t>& b) {
  Difference result;
  for (std::size_t i = 0; i < a.size(); ++i) {
    result.most = std::max(result.most, std::abs(a[i] - b[i]));
    result.mean += std::abs(a[i] - b[i]) / static_cast<double>(a.size());
  }
  return result;
}

class PillowTest : public ::testing::TestWithParam<CpuLevel> {
 protected:
  static const std::vector<Golden>& goldens() {
    static const std::vector<Golden> all = GoldenFile().read();
    return all;
  }
  static std::string name(const Golden& g, std::size_t i) {
    return "case " + std::to_string(i) + ": " + std::to_string(g.width) + "x" + std::to_string(g.height) + " -> " +
           std::to_string(g.out_width) + "x" + std::to_string(g.out_height);
  }
  std::vector<std::uint8_t> run(const Golden& golden, const Compose& chain) {
    const FusedPlan plan = plan_of(golden);
    const HeldPixels held(plan.window, golden.seed);
    GuardedOutput out(chain, plan);
    kernel_.run(chain, plan, held.pixels, out.view);
    return out.values<std::uint8_t>();
  }
  FusedKernel kernel_{GetParam()};
};

TEST_P(PillowTest, DiffersByAtMostOneLevelInEveryCase) {
  const Compose hwc{to_layout(ImageLayout::kHWC)};
  for (std::size_t i = 0; i < goldens().size(); ++i) {
    SCOPED_TRACE(name(goldens()[i], i));
    const FusedPlan plan = plan_of(goldens()[i]);
    ASSERT_EQ(plan.out_width, goldens()[i].out_width);
    ASSERT_EQ(plan.out_height, goldens()[i].out_height);
    EXPECT_LE(difference(run(goldens()[i], hwc), goldens()[i].rgb).most, 1);
  }
}

TEST_P(PillowTest, DiffersFarLessOnAverage) {
  const Compose hwc{to_layout(ImageLayout::kHWC)};
  double sum = 0;
  for (const Golden& golden : goldens()) sum += difference(run(golden, hwc), golden.rgb).mean;
  EXPECT_LT(sum / static_cast<double>(goldens().size()), 0.15);
}

TEST_P(PillowTest, EqualsItWhereNothingIsResampled) {
  const Compose hwc{to_layout(ImageLayout::kHWC)};
  int seen = 0;
  for (const Golden& golden : goldens()) {
    const bool resized =
        std::any_of(golden.ops.begin(), golden.ops.end(), [](auto& op) { return op[0] == 1 || op[0] == 2; });
    if (resized) continue;
    EXPECT_EQ(run(golden, hwc), golden.rgb);
    ++seen;
  }
  EXPECT_GE(seen, 6);
}

TEST_P(PillowTest, MakesTheSameInPlanes) {
  for (const Golden& golden : goldens()) {
    const auto hwc = run(golden, Compose{to_layout(ImageLayout::kHWC)}), chw = run(golden, Compose{});
    const std::size_t pixels = hwc.size() / 3;
    for (std::size_t i = 0; i < hwc.size(); ++i) ASSERT_EQ(chw[i % 3 * pixels + i / 3], hwc[i]);
  }
}

INSTANTIATE_TEST_SUITE_P(Levels, PillowTest, ::testing::ValuesIn(cpu_levels()),
                         [](const auto& level) { return std::string(to_string(level.param)); });

}  // namespace
}  // namespace infeed::testing
