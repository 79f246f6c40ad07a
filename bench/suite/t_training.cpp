// The training library beside LibTorch: infeed-train-bench (bench/train), which runs here as a program of its own, so
// that this one loads no LibTorch. No line where LibTorch is not there. Read: ratios are ours by theirs; below 1 we need
// less. T5 to T7 are of bench/train_ops.py.
#include <algorithm>
#include <array>
#include <initializer_list>
#include <stdexcept>

#include "bed.h"
#include "command.h"

namespace bench {

#ifdef BENCH_TRAIN
namespace {

std::string ask(const std::string& arguments) { return output_of(std::string(BENCH_TRAIN) + " " + arguments); }

double value_of(const std::string& text, const std::string& key) {
  const auto value = number_behind("\n" + text, "\n" + key + " ");
  if (!value) throw std::runtime_error("infeed-train-bench printed no " + key + ":\n" + text);
  return *value;
}

/// One line of what every round's output says under `key`.
struct Row {
  const char* id;
  const char* key;
  const char* what;
  const char* unit;
  std::optional<double> must{}, aim{};
};

void add(Report& report, const Row& row, Series rounds) {
  report.add({.id = row.id,
              .what = row.what,
              .unit = row.unit,
              .rounds = std::move(rounds),
              .better = Better::kLower,
              .must = row.must,
              .aim = row.aim});
}

void add_all(const Bed& bed, Report& report, const std::string& arguments, std::initializer_list<Row> rows) {
  std::vector<std::string> texts;
  for (int round = 0; round < bed.rounds; ++round) texts.push_back(ask(arguments));
  for (const Row& row : rows) {
    Series rounds;
    for (const std::string& text : texts) rounds.push_back(value_of(text, row.key));
    add(report, row, std::move(rounds));
  }
}

}  // namespace

void train_step(const Bed& bed, Report& report) {
  add_all(bed, report, "step cnn " + bed.size<std::string>("4 2", "1 1"),
          {{"E10", "infeed_ms", "training step of the demo's CNN, 2 threads", "ms"},
           {"E10", "to_channels_last", "the same by LibTorch's (channels_last)", "x", 1.0, 0.75}});
}

void train_mlp(const Bed& bed, Report& report) {
  add_all(bed, report, "step mlp " + bed.size<std::string>("9 20", "1 1"),
          {{"T1", "infeed_ms", "training step, MLP 784-512-512-10, batch 256, 2 threads", "ms"},
           {"T1", "to_torch", "the same by LibTorch's", "x", 0.75, 0.55},
           {"T1", "to_bare", "MLP: step by the sum of its bare operations", "x", 1.20, 1.08}});
}

void train_transformer(const Bed& bed, Report& report) {
  add_all(bed, report, "step transformer " + bed.size<std::string>("3 1", "1 1"),
          {{"T2", "infeed_ms", "training step, transformer 4 x 256, 8 heads, 256 tokens, batch 16, 2 threads", "ms"},
           {"T2", "to_torch", "the same by LibTorch's", "x", 0.75, 0.6},
           {"T2", "to_bare", "transformer: step by the sum of its bare operations", "x", 1.20, 1.08}});
}

void train_resnet(const Bed& bed, Report& report) {
  add_all(bed, report, "step resnet " + bed.size<std::string>("4 2", "1 1"),
          {{"T3", "infeed_ms", "training step, small ResNet, 64 x 64, batch 64, 2 threads", "ms"},
           {"T3", "to_torch", "the same by LibTorch's (NCHW)", "x", 0.65, 0.5},
           {"T3", "to_channels_last", "the same by LibTorch's (channels_last)", "x", 0.85, 0.65},
           {"T3", "to_bare", "ResNet: step by the sum of its bare operations", "x", 1.20, 1.08}});
}

void small_operations(const Bed& bed, Report& report) {
  add_all(bed, report, "small " + bed.size<std::string>("7", "1"),
          {{"T4", "tensor_ns", "C++: 16 floats times a tensor, with graph", "ns"},
           {"T4", "tensor_ratio", "the same by LibTorch's", "x", 1.0, 0.5},
           {"T4", "number_ns", "C++: 16 floats times a number, with graph", "ns"},
           {"T4", "number_ratio", "the same by LibTorch's", "x", 1.0, 0.5},
           {"T4", "chain_ratio", "C++: ten additions, sum and backward, by LibTorch's", "x", 1.0, 0.5}});
}

void train_memory(const Bed& bed, Report& report) {
  struct Case {
    const char* model;
    const char* peer;
    const char* what;
  };
  constexpr Case kCases[] = {{"mlp", "torch", "MLP: memory that training adds, by LibTorch's"},
                             {"transformer", "torch", "transformer: memory that training adds, by LibTorch's"},
                             {"resnet", "channels_last", "ResNet: memory that training adds, by LibTorch's"}};
  for (const auto& [model, peer, what] : kCases) {
    Series ratios;
    for (int round = 0; round < std::min(bed.rounds, 3); ++round) {
      const auto peak = [&, model = model](const char* who) {
        return value_of(ask("memory " + std::string(model) + " " + who), "peak_mib");
      };
      ratios.push_back(peak("infeed") / peak(peer));
    }
    add(report, {"T8", "", what, "x", 1.1, 0.9}, std::move(ratios));
  }
}
#else
void train_step(const Bed&, Report&) {}
void train_mlp(const Bed&, Report&) {}
void train_transformer(const Bed&, Report&) {}
void train_resnet(const Bed&, Report&) {}
void small_operations(const Bed&, Report&) {}
void train_memory(const Bed&, Report&) {}
#endif

}  // namespace bench
