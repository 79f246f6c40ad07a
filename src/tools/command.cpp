#include "tools/command.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <numeric>
#include <utility>
#include <vector>

#include "tools/interrupt.h"

namespace infeed::tools {
namespace {

/// Letters to add, drop or exchange to make `a` of `b`.
std::size_t edits_between(const std::string& a, const std::string& b) {
  std::vector<std::size_t> row(b.size() + 1);  // for the letters of `a` so far: with the first j of `b`
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i + 1);
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t exchanged = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({exchanged, row[j] + 1, diagonal + 1});
    }
  }
  return row.back();
}

}  // namespace

std::string unknown_command(const CLI::App& program, const std::string& word) {
  std::vector<std::string> names;
  for (const CLI::App* command : program.get_subcommands({})) names.push_back(command->get_name());
  const std::string closest = *std::min_element(names.begin(), names.end(), [&](const auto& a, const auto& b) {
    return edits_between(word, a) < edits_between(word, b);
  });
  const bool is_close = edits_between(word, closest) <= closest.size() / 2;
  return fmt::format("{}: '{}' is no command.{} There are {}; `{} --help` tells what they do.\n", program.get_name(),
                     word, is_close ? fmt::format(" Did you mean {}?", closest) : "", fmt::join(names, ", "),
                     program.get_name());
}

void say(const std::string& text) { static_cast<void>(std::fputs(text.c_str(), stderr)); }

void show_progress(const std::string& text) {
  if (isatty(STDERR_FILENO) == 1) {
    say("\r\033[K" + text);
  } else if (!text.empty()) {
    say(text + "\n");
  }
}

// The next file that is opened takes the lowest number: it must not get what is printed.
void keep_standard_streams() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(fd, F_GETFD) >= 0) continue;
    static_cast<void>(open("/dev/null", fd == STDERR_FILENO ? O_WRONLY : O_RDONLY));  // printing fails, and is told
  }
}

int run_command(const Command& command, const std::string& name) {
  try {
    const int status = command.run();
    if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return status;
    say(fmt::format("{}: standard output cannot be written.\n", name));
  } catch (const std::exception& error) {
    say(fmt::format("{}: {}\n", name, error.what()));
  }
  return interrupted() ? kInterrupted : command.failed;
}

}  // namespace infeed::tools
