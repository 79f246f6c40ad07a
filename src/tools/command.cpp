#include "tools/command.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <exception>

namespace infeed::tools {

void say(const std::string& text) { static_cast<void>(std::fputs(text.c_str(), stderr)); }

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
  return command.failed;
}

}  // namespace infeed::tools
