#pragma once
/// What `infeed sweep`, `infeed tune` and `infeed bench` ask in common: data, batch, step, device.

#include <CLI/CLI.hpp>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "infeed/dataset/dataset.h"
#include "infeed/tuner/sweep.h"

namespace infeed::tools {

struct JobArguments {
  std::string images;  ///< an image folder; empty: made-up samples
  int image_size = 224;
  std::int64_t samples = 100'000, cost_us = 1000, wait_us = 0, sample_kb = 150;
  double device_gb_per_s = 12;
  JobOptions job;

  void add_to(CLI::App& app);
  [[nodiscard]] std::unique_ptr<Dataset> dataset() const;
  /// With the device's speed, and an end on Ctrl-C.
  [[nodiscard]] JobOptions options() const;
};

/// "thread", "fork", "spawn". Throws ConfigError.
[[nodiscard]] std::vector<WorkerKind> worker_kinds(const std::vector<std::string>& names);

/// For numbers that count or measure.
extern const CLI::Validator kNotNegative;

/// What to print, and where.
struct OutputArguments {
  bool json = false, csv = false;
  std::string svg;  ///< a path; empty: none

  void add_to(CLI::App& app);
  /// Before anything is measured. Throws DataError where the picture could not be written.
  void check() const;
  /// Of a report that gives text, CSV, JSON and a picture.
  template <typename Report>
  void print(const Report& report) const;
};

/// "-": standard output. Throws DataError.
void write_file(const std::string& path, const std::string& text);

template <typename Report>
void OutputArguments::print(const Report& report) const {
  if (svg != "-") write_file("-", json ? report.to_state().to_json() + "\n" : csv ? report.csv() : report.str());
  if (!svg.empty()) write_file(svg, report.svg());
}

}  // namespace infeed::tools
