#pragma once
/// Messages inside of other messages.

#include <string>

namespace infeed {

/// A sentence as a part of another: without the dot at its end.
[[nodiscard]] inline std::string phrase(const std::string& sentence) {
  return sentence.substr(0, sentence.find_last_not_of('.') + 1);
}

}  // namespace infeed
