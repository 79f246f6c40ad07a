#pragma once
/// The words after `infeed`. One file each; main.cpp lists them.

#include <CLI/CLI.hpp>
#include <functional>
#include <string>

namespace infeed::tools {

struct Command {
  CLI::App* app = nullptr;
  std::function<int()> run;  ///< the exit status
  int failed = 1;            ///< the exit status where it throws
};

/// Runs it. What it throws, and output that could not be written, is said on standard error.
[[nodiscard]] int run_command(const Command& command, const std::string& name);

/// What to say of a word that is none of the program's commands: the closest one, and all of them.
[[nodiscard]] std::string unknown_command(const CLI::App& program, const std::string& word);

/// To standard error, whether or not that can be written.
void say(const std::string& text);

/// A line on standard error: on a terminal in place of the one before, elsewhere below it. Empty: takes it away.
void show_progress(const std::string& text);

/// Where the program was started with standard streams closed, they lead nowhere. To be called first.
void keep_standard_streams();

[[nodiscard]] Command add_prepare(CLI::App& program);
[[nodiscard]] Command add_doctor(CLI::App& program);
[[nodiscard]] Command add_sweep(CLI::App& program);
[[nodiscard]] Command add_tune(CLI::App& program);
[[nodiscard]] Command add_bench(CLI::App& program);

/// `infeed sweep` as a program.
[[nodiscard]] Command configure_sweep(CLI::App& app);

}  // namespace infeed::tools
