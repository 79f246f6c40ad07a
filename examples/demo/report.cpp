#include "report.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace demo {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

Json to_json(const Machine& machine) {
  return {{"cpus", machine.cpus},     {"cpu", machine.cpu},           {"memory_gib", machine.memory_gib},
          {"kernel", machine.kernel}, {"compiler", machine.compiler}, {"version", machine.version}};
}

Json to_json(const EpochReport& epoch) {
  return {{"loss", epoch.loss},
          {"accuracy", epoch.accuracy},
          {"samples_per_s", epoch.samples_per_s},
          {"waited_share", epoch.waited_share},
          {"seconds", epoch.seconds}};
}

Json to_json(const infeed::SweepRow& row) {
  return {{"kind", infeed::to_string(row.setting.kind)},  {"workers", row.setting.workers},
          {"samples_per_s", row.figures.samples_per_s},   {"spread", row.spread},
          {"cpu_us_per_sample", row.figures.cpu_s * 1e6}, {"pss_mb", row.figures.memory_bytes / 1e6},
          {"first_batch_ms", row.figures.first_batch_ms}, {"utilisation", row.figures.utilisation},
          {"others_share", row.figures.others_share}};
}

template <typename Item>
Json to_json(const std::vector<Item>& items) {
  Json list = Json::array();
  for (const Item& item : items) list.push_back(to_json(item));
  return list;
}

Json to_json(const Report& report) {
  Json json = {{"validation_accuracy", validation_accuracy(report.training)},
               {"epochs", to_json(report.training.epochs)},
               {"peak_memory_mb", static_cast<double>(report.training.peak_bytes) / 1e6},
               {"training_seconds", report.training.seconds},
               {"sweep", to_json(report.sweep.rows)}};
  if (!report.sweep.rows.empty()) {
    json["recommended"] = {{"kind", infeed::to_string(report.sweep.chosen.setting.kind)},
                           {"workers", report.sweep.chosen.setting.workers},
                           {"why", report.sweep.why}};
  }
  json["machine"] = to_json(report.machine);
  return json;
}

void write(const std::string& text, const std::string& path) {
  std::error_code error;
  const bool is_replaceable = !fs::exists(path, error) || fs::is_regular_file(path, error);  // a pipe is not
  const std::string partial = is_replaceable ? path + ".partial-" + std::to_string(getpid()) : path;
  std::ofstream file(partial);
  file << text;
  file.close();
  error.clear();
  if (file && is_replaceable) fs::rename(partial, path, error);
  if (file && !error) return;
  std::error_code ignored;
  if (is_replaceable) fs::remove(partial, ignored);
  throw std::runtime_error("cannot write " + path + "; is the disk full?");
}

}  // namespace

double validation_accuracy(const TrainReport& training) {
  return training.epochs.empty() ? 0 : training.epochs.back().accuracy;
}

void check_place_of_report(const std::string& path) {
  const fs::path parent = fs::absolute(path).parent_path();
  std::error_code error;
  fs::create_directories(parent, error);
  if (error || access(parent.c_str(), W_OK) != 0) {
    throw std::runtime_error("the figures cannot be written to " + path + ": " + parent.string() +
                             " is no folder that can be written to; choose another with --out");
  }
}

std::string picture_path(const std::string& path) { return fs::path(path).replace_extension(".svg").string(); }

void write_report(const Report& report, const std::string& path) {
  write(to_json(report).dump(2) + "\n", path);
  if (!report.sweep.rows.empty()) write(report.sweep.svg(), picture_path(path));
}

}  // namespace demo
