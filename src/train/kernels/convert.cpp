#include "train/kernels/convert.h"

#include "train/kernels/vector_math.h"

namespace infeed::kernels {
namespace {

INFEED_CLONES void widen_dense(float* to, const BFloat16* from, std::int64_t n) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) to[i] = widen<float>(from[i]);
}
INFEED_CLONES void narrow_dense(BFloat16* to, const float* from, std::int64_t n) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) to[i] = narrow<BFloat16>(from[i]);
}

template <class Wide, class T>
constexpr bool kVectorised = std::is_same_v<Wide, float>&& std::is_same_v<T, BFloat16>;

template <class Wide, class T>
void load(Wide* buffer, const std::byte* from, std::int64_t stride, std::int64_t n) {
  if (stride == sizeof(T)) {
    const auto* values = reinterpret_cast<const T*>(from);
    if constexpr (kVectorised<Wide, T>) return widen_dense(buffer, values, n);
    for (std::int64_t i = 0; i < n; ++i) buffer[i] = widen<Wide>(values[i]);
    return;
  }
  for (std::int64_t i = 0; i < n; ++i) buffer[i] = widen<Wide>(*reinterpret_cast<const T*>(from + i * stride));
}

template <class Wide, class T>
void store(std::byte* to, std::int64_t stride, const Wide* buffer, std::int64_t n) {
  if (stride == sizeof(T)) {
    auto* values = reinterpret_cast<T*>(to);
    if constexpr (kVectorised<Wide, T>) return narrow_dense(values, buffer, n);
    for (std::int64_t i = 0; i < n; ++i) values[i] = narrow<T>(buffer[i]);
    return;
  }
  for (std::int64_t i = 0; i < n; ++i) *reinterpret_cast<T*>(to + i * stride) = narrow<T>(buffer[i]);
}

}  // namespace

template <class Wide>
Load<Wide> loader(DType dtype) {
  Load<Wide> result = nullptr;
  with_dtype(dtype, [&]<class T>(T) { result = load<Wide, T>; });
  return result;
}

template <class Wide>
Store<Wide> storer(DType dtype) {
  Store<Wide> result = nullptr;
  with_dtype(dtype, [&]<class T>(T) { result = store<Wide, T>; });
  return result;
}

template Load<float> loader<float>(DType);
template Load<double> loader<double>(DType);
template Load<std::int64_t> loader<std::int64_t>(DType);
template Store<float> storer<float>(DType);
template Store<double> storer<double>(DType);
template Store<std::int64_t> storer<std::int64_t>(DType);

}  // namespace infeed::kernels
