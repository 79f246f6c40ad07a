// Each level's kernels are the portable ones, bit for bit, whatever the input.

#include "decode/jpeg_kernels.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace infeed {
namespace {

constexpr int kRowBytes = 400;

class JpegKernelsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (jpeg_kernels_avx2() == nullptr) GTEST_SKIP() << "this processor has no AVX2";
  }
  std::vector<std::uint8_t> random_row() {
    std::vector<std::uint8_t> row(kRowBytes + 2 * kKernelSlack);
    for (std::uint8_t& sample : row) sample = static_cast<std::uint8_t>(random_() >> 3);
    return row;
  }

  std::mt19937 random_{5};
  const JpegKernels& portable_ = jpeg_kernels_portable();
};

TEST_F(JpegKernelsTest, TransformBlocksAlike) {
  struct alignas(64) Block {
    std::int16_t values[64];
  };
  for (int round = 0; round < 20'000; ++round) {
    Block blocks[2] = {};
    QuantTable quants[2];
    const int reach = round % 3 == 0 ? 32767 : round % 3 == 1 ? 1023 : 40;
    for (int b = 0; b < 2; ++b) {
      for (auto& step : quants[b]) step = static_cast<std::int16_t>(random_() % (reach > 1023 ? 65536 : 256));
      const auto density = static_cast<unsigned>(random_() % 65);
      for (unsigned i = 0; i < density; ++i)
        blocks[b].values[random_() % (round % 5 == 0 ? 8 : 64)] =
            static_cast<std::int16_t>(static_cast<int>(random_() % (2U * reach + 1)) - reach);
    }
    std::uint8_t got[2][64], want[2][64];
    const auto run = [&](IdctPairFn transform, std::uint8_t(&out)[2][64]) {
      transform({blocks[0].values, &quants[0], false, out[0]}, 8, {blocks[1].values, &quants[1], false, out[1]}, 8);
    };
    run(jpeg_kernels_avx2()->idct_pair, got);
    run(portable_.idct_pair, want);
    ASSERT_TRUE(std::equal(got[0], got[0] + 128, want[0])) << "round " << round;
  }
}

TEST_F(JpegKernelsTest, DoubleRowsAlike) {
  const auto near = random_row(), far = random_row();
  for (int count = 1; count <= kRowBytes; count += 7) {
    std::vector<std::uint8_t> got(2 * kRowBytes + kKernelSlack), want = got;
    jpeg_kernels_avx2()->double_row(near.data() + kKernelSlack, count, got.data());
    portable_.double_row(near.data() + kKernelSlack, count, want.data());
    ASSERT_TRUE(std::equal(got.begin(), got.begin() + 2 * count, want.begin())) << count;
    jpeg_kernels_avx2()->double_both(near.data() + kKernelSlack, far.data() + kKernelSlack, count, got.data());
    portable_.double_both(near.data() + kKernelSlack, far.data() + kKernelSlack, count, want.data());
    ASSERT_TRUE(std::equal(got.begin(), got.begin() + 2 * count, want.begin())) << count;
  }
}

TEST_F(JpegKernelsTest, ConvertEveryColourAlike) {
  std::vector<std::uint8_t> y(256 + kKernelSlack), cb(256 + kKernelSlack), cr(256 + kKernelSlack);
  std::vector<std::uint8_t> got(4 * 256 + 4 * kKernelSlack), want = got;
  for (int i = 0; i < 256; ++i) y[static_cast<std::size_t>(i)] = static_cast<std::uint8_t>(i);
  for (int b = 0; b < 256; ++b) {
    for (int r = 0; r < 256; ++r) {
      std::fill(cb.begin(), cb.end(), static_cast<std::uint8_t>(b));
      std::fill(cr.begin(), cr.end(), static_cast<std::uint8_t>(r));
      jpeg_kernels_avx2()->colour(y.data(), cb.data(), cr.data(), 256, got.data());
      portable_.colour(y.data(), cb.data(), cr.data(), 256, want.data());
      ASSERT_TRUE(std::equal(got.begin(), got.begin() + 1024, want.begin())) << "Cb " << b << ", Cr " << r;
    }
  }
}

}  // namespace
}  // namespace infeed
