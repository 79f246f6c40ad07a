#pragma once
/// What every question gets.

#include <filesystem>
#include <string>
#include <utility>

#include "infeed/dataset/image_folder.h"
#include "report.h"

namespace bench {

struct Bed {
  int rounds = 5;
  bool quick = false;                                  ///< little work: for the test of the bench itself
  std::string images = {};                             ///< an ImageFolder
  std::filesystem::path scratch = "build/bench-data";  ///< where the images are made if none are given

  /// `full`, or `small` where the run is quick.
  template <typename T>
  [[nodiscard]] T size(T full, T small) const {
    return quick ? std::move(small) : std::move(full);
  }
};

/// Makes the demo's images in bed.scratch unless bed.images names some: 2,000 JPEGs, 500 x 375, about 96 kB each.
void provide_images(Bed& bed);

/// W1a: RandomResizedCrop(224), flip, normalised float32 [3, 224, 224], and the label.
[[nodiscard]] infeed::ImageFolder w1a(const Bed& bed);

// One file a question, eNN_name.cpp; the head says how to read the answer.
void loader_share(const Bed& bed, Report& report);  // E1
void image_cost(const Bed& bed, Report& report);    // E4
void transport(const Bed& bed, Report& report);     // E5
void hand_over(const Bed& bed, Report& report);     // E6
void native_rows(const Bed& bed, Report& report);   // E7
void many_workers(const Bed& bed, Report& report);  // E8
void start(const Bed& bed, Report& report);         // E9
void samplers(const Bed& bed, Report& report);      // E11
void slow_rows(const Bed& bed, Report& report);     // E12
void staging(const Bed& bed, Report& report);       // E13
void insight(const Bed& bed, Report& report);       // E14

// How many workers: S1 to S6 in s_workers.cpp.
void workers_decode(const Bed& bed, Report& report);    // S1
void workers_read(const Bed& bed, Report& report);      // S2
void workers_transfer(const Bed& bed, Report& report);  // S3
void workers_trainer(const Bed& bed, Report& report);   // S4
void workers_bursty(const Bed& bed, Report& report);    // S5
void workers_budget(const Bed& bed, Report& report);    // S6
void published_sweeps(const Bed& bed, Report& report);  // S7

void torch_pictures(const Bed& bed, Report& report);  // L1, both in l_torch_data.cpp
void torch_rows(const Bed& bed, Report& report);      // L2

// JPEG: j02_paths.cpp, and by infeed-jpeg-bench jpeg/jNN_name.cpp.
void jpeg_entropy(const Bed& bed, Report& report);      // J1
void jpeg_paths(const Bed& bed, Report& report);        // J2
void jpeg_evaluation(const Bed& bed, Report& report);   // J3
void jpeg_lighter(const Bed& bed, Report& report);      // J5
void jpeg_resize(const Bed& bed, Report& report);       // J6
void jpeg_large(const Bed& bed, Report& report);        // J7
void jpeg_progressive(const Bed& bed, Report& report);  // J8

// Training, in t_training.cpp.
void train_step(const Bed& bed, Report& report);         // E10
void train_mlp(const Bed& bed, Report& report);          // T1
void train_transformer(const Bed& bed, Report& report);  // T2
void train_resnet(const Bed& bed, Report& report);       // T3
void small_operations(const Bed& bed, Report& report);   // T4
void train_memory(const Bed& bed, Report& report);       // T8

}  // namespace bench
