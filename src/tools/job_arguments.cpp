#include "tools/job_arguments.h"

#include <fmt/format.h>

#include <cmath>

#include "base/whole_file.h"
#include "infeed/base/error.h"
#include "infeed/dataset/image_folder.h"
#include "infeed/dataset/synthetic.h"
#include "infeed/transform/image.h"
#include "tools/command.h"
#include "tools/interrupt.h"

namespace infeed::tools {
namespace {

constexpr std::int64_t kMostSampleKb = 1'000'000'000;

std::string check_not_negative(const std::string& text) {
  double value = 0;
  const bool good = CLI::detail::lexical_cast(text, value) && value >= 0 && std::isfinite(value);
  return good ? std::string() : text + " is not a number of 0 or more";
}

}  // namespace

const CLI::Validator kNotNegative(check_not_negative, "0 OR MORE");

void JobArguments::add_to(CLI::App& app) {
  app.add_option("--images,--data", images, "Folder of pictures, a folder for each class. Default: made-up samples");
  app.add_option("--image-size", image_size, "Side of the training crops, pixels")->capture_default_str();
  app.add_option("--samples", samples, "Made-up: how many")->check(kNotNegative)->capture_default_str();
  app.add_option("--cost-us", cost_us, "Made-up: CPU time of a sample, microseconds")
      ->check(kNotNegative)
      ->capture_default_str();
  app.add_option("--wait-us", wait_us, "Made-up: time that its read sleeps, microseconds")
      ->check(kNotNegative)
      ->capture_default_str();
  app.add_option("--sample-kb", sample_kb, "Made-up: size of a sample, kB")
      ->check(CLI::Range(std::int64_t{0}, kMostSampleKb))
      ->capture_default_str();
  app.add_option("--batch-size", job.batch_size, "Samples a batch")->capture_default_str();
  app.add_option("--step-ms", job.step_ms, "The trainer's step for a batch, milliseconds")
      ->check(kNotNegative)
      ->capture_default_str();
  app.add_option("--device", job.device, "Where batches go first: simulated, cuda:0. Default: they stay on the host");
  app.add_option("--device-gb-per-s", device_gb_per_s, "Of the simulated device's link")
      ->check(kNotNegative)
      ->capture_default_str();
  app.add_option("--memory-limit", job.memory_limit, "Bytes that the loader's batches may take; 0: no limit")
      ->check(kNotNegative);
  app.add_option("--seconds", job.seconds, "Measured, of each run; start and warm-up come before")
      ->check(kNotNegative)
      ->capture_default_str();
  app.add_option("--seed", job.seed, "Of the order and the transforms")->capture_default_str();
}

std::unique_ptr<Dataset> JobArguments::dataset() const {
  if (images.empty())
    return std::make_unique<SyntheticDataset>(samples, Schema{{"x", DType::kUInt8, {sample_kb * 1000}}},
                                              SyntheticOptions{.cost_us = cost_us, .wait_us = wait_us});
  ImageFolderOptions options;
  options.transforms = {random_resized_crop(image_size), random_horizontal_flip(), normalize()};
  return std::make_unique<ImageFolder>(images, options);
}

JobOptions JobArguments::options() const {
  JobOptions options = job;
  options.device_bytes_per_s = device_gb_per_s * 1e9;
  options.stop = [] { return interrupted().load(); };
  return options;
}

std::vector<WorkerKind> worker_kinds(const std::vector<std::string>& names) {
  std::vector<WorkerKind> kinds;
  for (const std::string& name : names) {
    bool known = false;
    for (const WorkerKind kind : {WorkerKind::kThread, WorkerKind::kFork, WorkerKind::kSpawn}) {
      if (name != to_string(kind)) continue;
      kinds.push_back(kind);
      known = true;
    }
    if (!known) throw ConfigError(fmt::format("'{}' is no kind of worker; there are thread, fork and spawn.", name));
  }
  return kinds;
}

void OutputArguments::add_to(CLI::App& app) {
  CLI::Option* as_json = app.add_flag("--json", json, "Print JSON");
  app.add_flag("--csv", csv, "Print CSV")->excludes(as_json);
  app.add_option("--svg", svg, "Write a picture there; - prints it instead");
}

void OutputArguments::check() const {
  if (!svg.empty() && svg != "-") check_whole_file(svg, "the picture");
}

void write_file(const std::string& path, const std::string& text) {
  if (path == "-") {
    fmt::print("{}", text);
  } else {
    write_whole_file(path, text, "the picture");
  }
}

}  // namespace infeed::tools
