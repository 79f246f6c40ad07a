#pragma once
// Programs as a shell runs them.

#include <sys/wait.h>

#include <cstdio>
#include <string>

namespace infeed::testing {

struct Outcome {
  int status = -1;   ///< of its exit
  std::string text;  ///< its standard output
};

/// A line for the shell, redirections and all.
inline Outcome run_command(const std::string& line) {
  Outcome outcome;
  FILE* pipe = popen(line.c_str(), "r");
  char buffer[4096];
  for (std::size_t got = 0; (got = fread(buffer, 1, sizeof buffer, pipe)) > 0;) outcome.text.append(buffer, got);
  outcome.status = WEXITSTATUS(pclose(pipe));
  return outcome;
}

}  // namespace infeed::testing
