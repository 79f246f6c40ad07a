#pragma once
/// The words after `infeed`. One file each; main.cpp lists them.

#include <CLI/CLI.hpp>
#include <functional>

namespace infeed::tools {

struct Command {
  CLI::App* app = nullptr;
  std::function<int()> run;  ///< the exit status
};

[[nodiscard]] Command add_prepare(CLI::App& program);
[[nodiscard]] Command add_doctor(CLI::App& program);
[[nodiscard]] Command add_sweep(CLI::App& program);
[[nodiscard]] Command add_tune(CLI::App& program);
[[nodiscard]] Command add_bench(CLI::App& program);

/// `infeed sweep` as a program.
[[nodiscard]] Command configure_sweep(CLI::App& app);

}  // namespace infeed::tools
