#include "infeed/sampler/sequential.h"

#include "conformance/sampler_conformance.h"

namespace infeed {
namespace {

SamplerCase sequential(const std::string& name, std::int64_t size) {
  return {name, size, size, false, [size] { return std::make_unique<SequentialSampler>(size); }};
}

INSTANTIATE_TEST_SUITE_P(Sequential, SamplerConformance,
                         ::testing::Values(sequential("Empty", 0), sequential("One", 1), sequential("Hundred", 100)),
                         sampler_case_name);

TEST(SequentialSampler, CountsUp) {
  SequentialSampler sampler(5);
  std::vector<std::int64_t> indices(8);
  ASSERT_EQ(sampler.next(indices), 5U);
  indices.resize(5);
  EXPECT_EQ(indices, (std::vector<std::int64_t>{0, 1, 2, 3, 4}));
}

TEST(SequentialSampler, RefusesANegativeSize) { EXPECT_THROW(SequentialSampler(-1), ConfigError); }

/// A sampler that leaves skip to the interface.
class Countdown final : public Sampler {
 public:
  explicit Countdown(std::int64_t size) : left_(size) {}
  void start_epoch(std::uint64_t) override {}
  std::size_t next(std::span<std::int64_t> indices) override {
    const auto count = std::min<std::int64_t>(left_, static_cast<std::int64_t>(indices.size()));
    for (std::int64_t i = 0; i < count; ++i) indices[static_cast<std::size_t>(i)] = --left_;
    return static_cast<std::size_t>(count);
  }
  std::optional<std::int64_t> size() const override { return std::nullopt; }
  void save(State&) const override {}
  void load(const State&) override {}
  std::int64_t left_;
};

TEST(Sampler, SkipsByDrawingUnlessItKnowsBetter) {
  Countdown sampler(5000);
  EXPECT_EQ(sampler.skip(3000), 3000);
  EXPECT_EQ(sampler.left_, 2000);
  EXPECT_EQ(sampler.skip(3000), 2000);
}

}  // namespace
}  // namespace infeed
