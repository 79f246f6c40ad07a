#pragma once
/// What launched functions of a stream failed with, in stream order: a driver's host functions cannot fail the stream.

#include <cstdint>
#include <deque>
#include <limits>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace infeed {

/// Of one stream, until its failure is reported; then the stream takes a new one. Threads: any.
class LaunchFate {
 public:
  /// A place in a stream: behind what was launched before.
  struct Mark {
    std::shared_ptr<LaunchFate> fate;  ///< null: nothing can have failed
    std::uint64_t place = 0;
  };

  [[nodiscard]] static Mark mark(const std::shared_ptr<LaunchFate>& fate);

  /// A function is launched; settle() takes the number that this returns.
  [[nodiscard]] std::uint64_t launched();
  /// It has run, and failed unless `error` is empty.
  void settle(std::uint64_t number, const std::string& error);
  /// The stream waits for `mark`: what failed before that fails what comes now.
  void inherit(const Mark& mark);

  /// The failure that lies before `place`; empty if there is none, or none yet.
  [[nodiscard]] std::string failure(std::uint64_t place = std::numeric_limits<std::uint64_t>::max());

 private:
  struct Link {
    std::uint64_t at;
    Mark from;
  };
  [[nodiscard]] bool settled_well(std::uint64_t place);

  std::mutex mutex_;  // all below; never held while another fate is asked
  std::uint64_t last_ = 0;
  std::deque<std::uint64_t> running_;  // launched and not settled, in order
  std::uint64_t failed_at_ = 0;
  std::string error_;
  std::vector<Link> links_;
};

}  // namespace infeed
