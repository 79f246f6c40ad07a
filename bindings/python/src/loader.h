#pragma once
/// The engine's loader as Python holds it: lifetime, iterators, the shape of a batch.

#include <nanobind/nanobind.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "array.h"
#include "infeed/loader/loader.h"

namespace infeed::python {

/// What a batch is beside its arrays.
struct BatchInfo {
  std::vector<std::int64_t> indices;
  std::uint64_t epoch = 0;
  std::uint64_t number = 0;
};

/// Batches as Python objects: a subclass of dict, by name, or of tuple, in the schema's order. Both have a slot, or a
/// place in their __dict__, for `_info`.
class BatchFactory {
 public:
  BatchFactory(Output output, nb::object batch_type);
  [[nodiscard]] nb::object make(const Batch& batch);
  [[nodiscard]] const ArrayFactory& arrays() const noexcept { return arrays_; }

 private:
  [[nodiscard]] nb::object as_dict(const std::vector<NamedArray>& fields, SharedMemory& memory);
  [[nodiscard]] nb::object as_tuple(const std::vector<NamedArray>& fields, SharedMemory& memory) const;
  [[nodiscard]] nb::handle key(std::size_t field, const std::string& name);

  ArrayFactory arrays_;
  nb::object type_;
  nb::object no_arguments_;
  nb::object info_;
  bool dict_;
  std::vector<std::pair<std::string, nb::object>> keys_;  ///< the last batch's names
};

/// Threads: any, with the GIL; what can block drops it. close() makes a next() on another thread leave.
class PythonLoader {
 public:
  /// Forks or starts the workers. `source`: what the loader borrows, kept alive.
  PythonLoader(nb::object source, LoaderOptions options, BatchFactory batches);
  ~PythonLoader() { close(); }
  PythonLoader(const PythonLoader&) = delete;
  PythonLoader& operator=(const PythonLoader&) = delete;

  /// Stops the workers and frees what is not held. Waits, some seconds at most, until a next() on another thread is back
  /// in Python: at the interpreter's end a thread must not be left in C++. Idempotent.
  void close() noexcept;
  /// Throws ConfigError after close().
  [[nodiscard]] std::shared_ptr<Loader> open() const;

  /// A new iterator makes those before it invalid.
  [[nodiscard]] std::uint64_t new_iterator() noexcept { return ++iterators_; }
  /// The next batch for iterator `number`; nullopt at the epoch's end. `first`: begin as Loader::begin() does.
  [[nodiscard]] std::optional<nb::object> next(std::uint64_t number, bool first);

 private:
  /// A thread in next(), until it is back in Python.
  class Inside {
   public:
    explicit Inside(PythonLoader& loader);
    ~Inside();
    Inside(const Inside&) = delete;
    Inside& operator=(const Inside&) = delete;

   private:
    PythonLoader& loader_;
  };

  [[nodiscard]] static std::optional<Batch> draw(Loader& loader, bool first);
  void wait_until_idle() noexcept;

  nb::object source_;
  BatchFactory batches_;
  std::shared_ptr<std::atomic<bool>> closing_;
  mutable std::mutex mutex_;  ///< loader_ itself, inside_; never held where the GIL is waited for
  std::shared_ptr<Loader> loader_;
  int inside_ = 0;
  std::condition_variable idle_;
  std::atomic<std::uint64_t> iterators_{0};
};

}  // namespace infeed::python
