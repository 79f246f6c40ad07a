// An accelerator beside the host: batches are copied to it while it computes on the one before. The device is
// simulated, with a copy engine and a compute engine of its own; a real one comes behind the same interface.
#include <infeed/infeed.h>
#include <infeed/loader/stager.h>

#include <cstdio>

int main() {
  const infeed::SyntheticDataset dataset(
      2'000, {{"image", infeed::DType::kUInt8, {3, 64, 64}}, {"index", infeed::DType::kInt64, {}}});
  infeed::Loader loader(dataset, {.batch_size = 100, .num_workers = 2});

  const auto device = std::make_shared<infeed::SimulatedDevice>(infeed::SimulatedOptions{.bandwidth_bytes_per_s = 2e9});
  infeed::Stager stager(loader, device, {.in_flight = 2});

  std::int64_t sum = 0;  // written by the device's compute engine alone, until synchronize()
  while (const auto staged = stager.next()) {
    // Queued, not run: the compute stream begins when the batch's copy has passed. Then the batch may be dropped.
    device->compute(stager.compute_stream(), {.duration_us = 1'000, .run = [&sum, index = staged->at("index")] {
                                                for (std::int64_t i = 0; i < index.numel(); ++i)
                                                  sum += index.as<std::int64_t>()[i];
                                              }});
  }
  stager.compute_stream().synchronize();

  std::printf("sum of indices, as the device read them: %lld\n%s", static_cast<long long>(sum),
              stager.stats().str().c_str());
  return sum == 1'999 * 2'000 / 2 ? 0 : 1;
}
