#pragma once
/// The rows J1 and J3 to J8 of the table, but for J4: what reaches into the decoder is measured in this program.

#include <filesystem>

#include "report.h"

namespace bench::jpeg {

struct Bed {
  int rounds = 5;
  bool quick = false;
  std::filesystem::path images;

  template <typename T>
  [[nodiscard]] T size(T full, T small) const {
    return quick ? small : full;
  }
};

// One file a question; its head says how to read the answer.
void entropy(const Bed& bed, Report& report);      // J1
void evaluation(const Bed& bed, Report& report);   // J3
void lighter(const Bed& bed, Report& report);      // J5
void resize(const Bed& bed, Report& report);       // J6
void large(const Bed& bed, Report& report);        // J7
void progressive(const Bed& bed, Report& report);  // J8

}  // namespace bench::jpeg
