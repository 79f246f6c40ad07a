#pragma once
// Workers that answer with what they were asked, and verbs for the consumer.

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "infeed/base/error.h"
#include "infeed/exchange/exchange.h"

namespace infeed::testing {

/// "7: 3 4 5" for indices, "7= text" for bytes.
inline std::string answer_to(const ExchangeTask& task) {
  std::string text = std::to_string(task.number) + (task.is_bytes ? "= " : ":");
  for (const std::byte byte : task.bytes) text.push_back(static_cast<char>(byte));
  for (const std::int64_t index : task.indices) text.append(" ").append(std::to_string(index));
  return text;
}

inline void reply(ExchangeWorker& port, const std::string& text) {
  std::memcpy(port.memory().data(), text.data(), text.size());
  port.publish(text.size());
}

inline void answer_until_stopped(const ExchangeHandle& handle, int worker) {
  ExchangeWorker port(handle, worker);
  while (!port.stopping()) {
    if (const auto task = port.claim(-1)) reply(port, answer_to(*task));
  }
}

/// One task, waiting for it as long as the test may last.
inline ExchangeTask claim_one(ExchangeWorker& port) {
  for (;;)
    if (const auto task = port.claim(-1)) return *task;
}

inline std::string text_of(const ExchangeMessage& message) {
  return {reinterpret_cast<const char*>(message.bytes.data()), message.bytes.size()};
}

inline void wait_for(Exchange& exchange, std::uint64_t number) {
  while (exchange.wait(std::span(&number, 1), {}, -1).kind != ExchangeEvent::Kind::kReady) {
  }
}

inline std::string receive(Exchange& exchange, std::uint64_t number) {
  wait_for(exchange, number);
  return text_of(exchange.take(number));
}

inline void post(Exchange& exchange, std::uint64_t number, int worker, const std::vector<std::int64_t>& indices) {
  exchange.post(number, worker, std::span(indices));
}
inline void post_text(Exchange& exchange, std::uint64_t number, int worker, const std::string& text) {
  exchange.post(number, worker, std::as_bytes(std::span(text)));
}

/// The text of the E that `action` throws.
template <typename E>
std::string error_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const E& error) {
    return error.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return {};
}

/// Workers as threads over the consumer's own mapping, as the thread sanitizer needs it.
class Threads {
 public:
  Threads(Exchange& exchange, int num_workers) : exchange_(exchange) {
    for (int worker = 0; worker < num_workers; ++worker)
      threads_.emplace_back([handle = exchange.handle(), worker] { answer_until_stopped(handle, worker); });
  }
  ~Threads() { stop(); }
  void stop() {
    if (threads_.empty()) return;
    exchange_.stop();
    threads_.clear();
  }

 private:
  Exchange& exchange_;
  std::vector<std::jthread> threads_;
};

}  // namespace infeed::testing
