// LibTorch, C++, two workers: infeed::torch::data_loader() against torch::data::make_data_loader() over the same dataset,
// each in a process of its own (torch_data_bench.cpp, so that this one loads no LibTorch). "tuned": its process keeps the
// memory that malloc has once got, by two environment variables; what remains is transport. No line without LibTorch.
#include <fmt/format.h>

#include <stdexcept>

#include "bed.h"
#include "command.h"

namespace bench {

#ifdef BENCH_TORCH_DATA
namespace {

struct Run {
  double rate = 0, cpu_us = 0;
};

class Contest {
 public:
  Contest(std::string work, std::string argument) : work_(std::move(work)), argument_(std::move(argument)) {}

  /// One turn; all turns must have seen the same rows.
  Run turn(const std::string& loader, const std::string& environment = "") {
    const std::string text =
        output_of(fmt::format("env {} {} {} {} {}", environment, BENCH_TORCH_DATA, work_, loader, argument_));
    const auto rate = number_behind(text, "rate "), cpu = number_behind(text, "cpu ");
    const std::string sum = text.substr(std::min(text.find("sum "), text.size()));
    if (!rate || !cpu) throw std::runtime_error("torch_data_bench printed no rate:\n" + text);
    if (sum_.empty()) sum_ = sum;
    if (sum != sum_)
      throw std::runtime_error(fmt::format("{} with {} gave other rows than the first loader", work_, loader));
    return {*rate, *cpu};
  }

 private:
  std::string work_, argument_, sum_;
};

struct Bars {
  double rate[2], cpu[2], tuned[2];  // must, aim
};

constexpr const char* kTuned = "MALLOC_MMAP_THRESHOLD_=1073741824 MALLOC_TRIM_THRESHOLD_=4294967296";

void compare(const std::string& id, const std::string& work, Contest contest, const Bars& bars, bool images,
             const Bed& bed, Report& report) {
  Series rate, by_torch, cpu, by_tuned, with_images;
  for (int round = 0; round < bed.rounds; ++round) {
    const Run theirs = contest.turn("torch"), ours = contest.turn("infeed"), tuned = contest.turn("torch", kTuned);
    rate.push_back(ours.rate);
    by_torch.push_back(ours.rate / theirs.rate);
    cpu.push_back(ours.cpu_us / theirs.cpu_us);
    by_tuned.push_back(ours.rate / tuned.rate);
    if (images) with_images.push_back(contest.turn("infeed-images").rate / theirs.rate);
  }
  const auto line = [&](const std::string& what, const std::string& unit, const Series& rounds, const double* bar,
                        Better better) {
    Line result{.id = id, .what = work + what, .unit = unit, .rounds = rounds, .better = better};
    if (bar != nullptr) result.must = bar[0], result.aim = bar[1];
    report.add(std::move(result));
  };
  line(" data_loader() under LibTorch, 2 workers", "samples/s", rate, nullptr, Better::kHigher);
  line(" the same by torch::data's", "x", by_torch, bars.rate, Better::kHigher);
  line(" CPU a sample by torch::data's", "x", cpu, bars.cpu, Better::kLower);
  line(" rate by torch::data's with a tuned malloc", "x", by_tuned, bars.tuned, Better::kHigher);
  constexpr double kImages[] = {1.55, 1.75};
  if (images)
    line(" rate with our image operations, by torch::data's with a full decode", "x", with_images, kImages,
         Better::kHigher);
}

}  // namespace

void torch_pictures(const Bed& bed, Report& report) {
  compare("L1", "W1a", Contest("W1a", bed.images), {{1.3, 1.45}, {0.75, 0.67}, {0.97, 1.0}}, true, bed, report);
}
void torch_rows(const Bed& bed, Report& report) {
  compare("L2", "W4", Contest("W4", bed.size("2048", "64")), {{5, 6.3}, {0.22, 0.17}, {1.15, 1.3}}, false, bed, report);
}
#else
void torch_pictures(const Bed&, Report&) {}
void torch_rows(const Bed&, Report&) {}
#endif

}  // namespace bench
