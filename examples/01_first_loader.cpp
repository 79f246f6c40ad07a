// A folder of images (ROOT/<class>/*.jpg) as shuffled batches, made by four threads. Usage: 01_first_loader [ROOT]
#include <infeed/infeed.h>

#include <cstdio>

#include "make_images.h"  // the demo's: paints a few pictures where no folder is given

int main(int argc, char** argv) {
  if (argc < 2) demo::make_image_set({.root = "01-images", .train = 100, .val = 0});
  const char* root = argc < 2 ? "01-images/train" : argv[1];

  const infeed::ImageFolder dataset(
      root, {.transforms = {infeed::random_resized_crop(64), infeed::random_horizontal_flip(), infeed::normalize()}});
  infeed::Loader loader(dataset, {.batch_size = 16, .shuffle = true, .num_workers = 4});

  for (int epoch = 0; epoch < 2; ++epoch) {
    while (const auto batch = loader.next()) {  // empty at the epoch's end
      const infeed::ArrayView& image = batch->at("image");
      const infeed::ArrayView& label = batch->at("label");
      std::printf("epoch %d, batch %llu: image %s, first pixel %.2f, first label %lld\n", epoch,
                  static_cast<unsigned long long>(batch->number()), image.shape.str().c_str(),
                  static_cast<double>(*image.as<float>()), static_cast<long long>(*label.as<std::int64_t>()));
    }
  }
  std::printf("%s", loader.stats().str().c_str());
}
