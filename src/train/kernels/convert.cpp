#include "train/kernels/convert.h"

namespace infeed::kernels {
namespace {

template <class Wide, class T>
void load(Wide* buffer, const std::byte* from, std::int64_t stride, std::int64_t n) {
  if (stride == sizeof(T)) {
    const auto* values = reinterpret_cast<const T*>(from);
    for (std::int64_t i = 0; i < n; ++i) buffer[i] = widen<Wide>(values[i]);
    return;
  }
  for (std::int64_t i = 0; i < n; ++i) buffer[i] = widen<Wide>(*reinterpret_cast<const T*>(from + i * stride));
}

template <class Wide, class T>
void store(std::byte* to, std::int64_t stride, const Wide* buffer, std::int64_t n) {
  if (stride == sizeof(T)) {
    auto* values = reinterpret_cast<T*>(to);
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
