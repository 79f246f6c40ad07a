// Batches that arrive on a GPU; on the host where there is none, or no driver, or no plugin. One program for both.
//
//   11_gpu [cuda:0]
#include <infeed/infeed.h>

#include <cstdio>
#include <vector>

std::string device_or_host(const std::string& wanted) {
  try {
    std::printf("training on %s\n", infeed::open_device(wanted)->name().c_str());
    return wanted;
  } catch (const infeed::DeviceError& missing) {
    std::printf("%s\nTraining on the host.\n", missing.what());
    return "cpu";
  }
}

int main(int argc, char** argv) {
  const std::string name = device_or_host(argc > 1 ? argv[1] : "cuda:0");
  const infeed::SyntheticDataset dataset(
      2'000, {{"image", infeed::DType::kUInt8, {3, 64, 64}}, {"index", infeed::DType::kInt64, {}}});

  // A stream of our own for the steps; one of your framework's is borrowed: device->borrow_stream(cudaStream_t).
  const auto device = infeed::open_device(name);
  const auto stream = device->create_stream();
  infeed::Loader loader(dataset, {.batch_size = 100, .num_workers = 2, .device = name, .compute_stream = stream.get()});

  std::int64_t sum = 0;
  std::vector<std::int64_t> on_host(100);
  const auto to_host = infeed::CopyDirection::kDeviceToHost;
  while (const auto batch = loader.next()) {
    const infeed::ArrayView& index = batch->at("index");  // in device memory, ready for what is queued in `stream`
    stream->copy_async(on_host.data(), index.data, index.nbytes(), to_host);  // stands for kernels
    stream->synchronize();
    for (std::int64_t i = 0; i < batch->size(); ++i) sum += on_host[static_cast<std::size_t>(i)];
  }
  std::printf("sum of indices, as they came back: %lld\n", static_cast<long long>(sum));
  if (loader.stager() != nullptr) std::printf("%s", loader.stager()->stats().str().c_str());
  return sum == 1'999 * 2'000 / 2 ? 0 : 1;
}
