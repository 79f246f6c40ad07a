#include "train/kernels/copy.h"

#include <array>
#include <cstring>

#include "train/kernels/convert.h"
#include "train/kernels/loop.h"
#include "train/kernels/on_device.h"
#include "train/kernels/reorder.h"
#include "train/tensor/geometry.h"

namespace infeed::kernels {
namespace {

constexpr std::int64_t kBlock = 256;  // elements converted at a time through a buffer on the stack

template <class T>
void move_strided(const Run<2>& run) {
  for (std::int64_t i = 0; i < run.count; ++i)
    std::memcpy(run.data[0] + i * run.stride[0], run.data[1] + i * run.stride[1], sizeof(T));
}

void move_run(const Run<2>& run, std::int64_t size) {
  if (run.stride[0] == size && run.stride[1] == size) {
    std::memcpy(run.data[0], run.data[1], static_cast<std::size_t>(run.count * size));
    return;
  }
  switch (size) {
    case 1: return move_strided<std::uint8_t>(run);
    case 2: return move_strided<std::uint16_t>(run);
    case 4: return move_strided<std::uint32_t>(run);
    default: return move_strided<std::uint64_t>(run);
  }
}

template <class Wide>
void convert(const Loop<2>& loop, DType out, DType in) {
  const Load<Wide> load_in = loader<Wide>(in);
  const Store<Wide> store_out = storer<Wide>(out);
  loop.run([=](const Run<2>& run) {
    std::array<Wide, kBlock> buffer;
    for (std::int64_t first = 0; first < run.count; first += kBlock) {
      const std::int64_t n = std::min(kBlock, run.count - first);
      load_in(buffer.data(), run.data[1] + first * run.stride[1], run.stride[1], n);
      store_out(run.data[0] + first * run.stride[0], run.stride[0], buffer.data(), n);
    }
  });
}

// float32 holds these exactly.
bool fits_float(DType dtype) { return itemsize(dtype) <= 2 || dtype == DType::kFloat32; }

}  // namespace

void copy(const Tensor& out, const Tensor& in) {
  if (out.is_meta() || in.is_meta()) return;
  if (is_on_device(out) || is_on_device(in)) return on_device::copy(out, in);
  if (reorder(out, in)) return;
  const Strides strides = broadcast_strides(in.shape(), in.strides(), out.shape());
  const Loop<2> loop(out.shape(), {&out, &in}, {out.strides(), strides});
  if (out.dtype() == in.dtype()) {
    loop.run([size = static_cast<std::int64_t>(itemsize(out.dtype()))](const Run<2>& run) { move_run(run, size); });
  } else if (!is_floating_point(out.dtype()) && !is_floating_point(in.dtype())) {
    convert<std::int64_t>(loop, out.dtype(), in.dtype());
  } else if (fits_float(out.dtype()) && fits_float(in.dtype())) {
    convert<float>(loop, out.dtype(), in.dtype());
  } else {
    convert<double>(loop, out.dtype(), in.dtype());
  }
}

void fill(const Tensor& out, const Scalar& value) {
  if (is_on_device(out)) return on_device::copy(out, Tensor::wrapped(value));
  const Loop<1> loop(out.shape(), {&out}, {out.strides()});
  with_dtype(out.dtype(), [&]<class T>(T) {
    const T element = value.is_float() ? narrow<T>(value.to_double()) : narrow<T>(value.to_int());
    loop.run([=](const Run<1>& run) {
      for (std::int64_t i = 0; i < run.count; ++i) *reinterpret_cast<T*>(run.data[0] + i * run.stride[0]) = element;
    });
  });
}

}  // namespace infeed::kernels
