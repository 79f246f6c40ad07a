// Damaged files in a large set: skip them, keep batches full, and learn afterwards which they were.
#include <infeed/infeed.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

#include "make_images.h"

namespace fs = std::filesystem;

// A folder with one file cut in half, and one that holds a web page.
std::string make_faulty_folder() {
  const std::string root = "05-images";
  demo::make_image_set({.root = root, .train = 40, .val = 0});
  const fs::path folder = fs::path(root) / "train/dots";
  fs::resize_file(folder / "00001.jpg", 40'000);
  std::ofstream(folder / "00002.jpg") << "<html>404 Not Found</html>";
  return root + "/train";
}

int main() {
  const infeed::ImageFolder dataset(make_faulty_folder(), {.transforms = {infeed::random_resized_crop(64)}});
  infeed::Loader loader(dataset, {.batch_size = 19,
                                  .num_workers = 2,
                                  .worker_kind = infeed::WorkerKind::kFork,
                                  .on_error = infeed::OnError::kSkip});  // kRaise is the default, kReplace a third way
  while (const auto batch = loader.next()) {
    std::printf("batch %llu: %lld images\n", static_cast<unsigned long long>(batch->number()),
                static_cast<long long>(batch->size()));
  }
  const infeed::LoaderStats stats = loader.stats();
  for (const infeed::FaultySample& sample : stats.faulty) std::printf("left out: %s\n", sample.reason.c_str());
  return stats.skipped == 2 ? 0 : 1;
}
