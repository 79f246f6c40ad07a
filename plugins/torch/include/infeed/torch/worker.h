#pragma once
/// What batch_maker.h needs and no template does: the ring's rows as requests, errors, and a worker's settings.

#include <cstdint>
#include <exception>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "infeed/dataset/dataset.h"
#include "infeed/loader/options.h"

namespace infeed::torch {

/// A dataset whose samples are their own indices: what the ring carries to a worker.
class INFEED_API RequestDataset final : public Dataset {
 public:
  RequestDataset();
  /// No limit: torch::data leaves it to the dataset to refuse an index.
  [[nodiscard]] std::int64_t size() const override;
  [[nodiscard]] const Schema& schema() const override { return schema_; }
  void read(Row& row) const override;

 private:
  Schema schema_;
};

/// The indices of one batch. In a process of its own, LibTorch's default generator is seeded by the loader's seed, the
/// epoch and the first index: what a transform draws does not depend on the worker.
class INFEED_API Request {
 public:
  Request(std::span<const std::vector<ArrayView>> rows, WorkerKind kind);
  [[nodiscard]] std::span<const std::size_t> indices() const noexcept { return indices_; }
  [[nodiscard]] std::uint64_t epoch() const noexcept { return epoch_; }

 private:
  std::vector<std::size_t> indices_;
  std::uint64_t epoch_ = 0;
};

/// What workers of this process threw: the consumer throws the same object again, as torch::data does. Threads: any.
class INFEED_API Faults {
 public:
  explicit Faults(WorkerKind kind) : kind_(kind) {}
  [[nodiscard]] WorkerKind kind() const noexcept { return kind_; }

  /// Calls f. What it throws leaves as a DataError with a number by which find() knows it, or as it is where the
  /// consumer is another process.
  template <typename F>
  void keep(const F& f) {
    try {
      f();
    } catch (...) {
      rethrow(std::current_exception());
    }
  }
  /// The exception behind a text of the loader's; null if it is not one of these.
  [[nodiscard]] std::exception_ptr find(const std::string& text);

 private:
  [[noreturn]] void rethrow(std::exception_ptr error);

  WorkerKind kind_;
  std::mutex mutex_;
  std::uint64_t next_ = 0;
  std::vector<std::pair<std::string, std::exception_ptr>> kept_;
};

/// The text of an exception, with its type; without the stack of LibTorch's own.
[[nodiscard]] INFEED_API std::string describe(const std::exception_ptr& error) noexcept;
/// What the dataset threw, on its way to Faults.
struct NamedFault {
  std::string text;  ///< names the samples
  std::exception_ptr cause;
};
/// Throws the exception being handled as a NamedFault.
[[noreturn]] INFEED_API void throw_for_samples(std::span<const std::size_t> indices);

/// Calls f for samples; what it throws names them: one by its index, of many the first.
template <typename F>
auto name_samples(std::span<const std::size_t> indices, const F& f) {
  try {
    return f();
  } catch (const NamedFault&) {
    throw;
  } catch (...) {
    throw_for_samples(indices);
  }
}

/// In a forked worker, before its first batch: LibTorch runs on one thread (its pool did not survive the fork), its default
/// generator is free (a thread that the fork left behind may have been drawing), and malloc keeps what it has (a sample's
/// fresh pages cost more than filling them).
INFEED_API void settle_process();

/// Of LibTorch's default generator, without a draw.
[[nodiscard]] INFEED_API std::uint64_t current_seed();

}  // namespace infeed::torch
