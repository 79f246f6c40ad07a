#include "bed.h"

#include "make_images.h"

namespace bench {

void provide_images(Bed& bed) {
  if (!bed.images.empty()) return;
  demo::make_image_set({.root = bed.scratch, .train = bed.size(2000, 60), .val = 10});
  bed.images = bed.scratch / "train";
}

infeed::ImageFolder w1a(const Bed& bed) {
  return infeed::ImageFolder(bed.images, {.transforms = {infeed::random_resized_crop(224),
                                                         infeed::random_horizontal_flip(), infeed::normalize()}});
}

}  // namespace bench
