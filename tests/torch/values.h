#pragma once
// What a batch holds, for comparison.

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <vector>

namespace infeed::testing {

/// Calls f until it does not throw E.
template <typename E, typename F>
auto retried(const F& f) {
  for (;;) {
    try {
      return f();
    } catch (const E&) {
    }
  }
}

inline void expect_same(const at::Tensor& a, const at::Tensor& b) {
  EXPECT_EQ(a.scalar_type(), b.scalar_type());
  EXPECT_TRUE(at::equal(a, b)) << a << b;
}

inline std::vector<std::int64_t> values(const at::Tensor& tensor) {
  const at::Tensor plain = tensor.to(at::kLong).contiguous();
  return {plain.const_data_ptr<std::int64_t>(), plain.const_data_ptr<std::int64_t>() + plain.numel()};
}

template <typename Loader>
std::vector<std::int64_t> targets(Loader& loader) {
  std::vector<std::int64_t> all;
  for (auto& batch : loader) {
    for (const std::int64_t target : values(batch.target)) all.push_back(target);
  }
  return all;
}

}  // namespace infeed::testing
