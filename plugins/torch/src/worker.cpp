#include "infeed/torch/worker.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Parallel.h>
#include <c10/util/Exception.h>
#include <c10/util/StringUtil.h>
#include <c10/util/Type.h>
#include <malloc.h>

#include <algorithm>
#include <limits>
#include <mutex>
#include <new>

#include "infeed/base/error.h"

namespace infeed::torch {
namespace {

constexpr std::size_t kKeptFaults = 64;  // of batches that the consumer has not come to, or never will
constexpr std::size_t kNamedSamples = 8;
// Larger than a sample; glibc's own limit is 32 MiB.
constexpr int kLargestSample = 32 << 20;
constexpr int kKeptBytes = 256 << 20;

}  // namespace

RequestDataset::RequestDataset()
    : schema_{{"index", DType::kInt64, {}}, {"seed", DType::kUInt64, {}}, {"epoch", DType::kUInt64, {}}} {}

std::int64_t RequestDataset::size() const { return std::numeric_limits<std::int64_t>::max(); }

void RequestDataset::read(Row& row) const {
  row.set(0, row.index());
  row.set(1, row.context().rng().next_u64());
  row.set(2, row.context().epoch);
}

Request::Request(std::span<const std::vector<ArrayView>> rows, WorkerKind kind) {
  for (const ArrayView& row : rows[0]) indices_.push_back(static_cast<std::size_t>(*row.as<std::int64_t>()));
  epoch_ = *rows[2].front().as<std::uint64_t>();
  if (kind == WorkerKind::kFork) {
    at::Generator generator = at::detail::getDefaultCPUGenerator();
    generator.set_current_seed(*rows[1].front().as<std::uint64_t>());
  }
}

std::string describe(const std::exception_ptr& error) noexcept {
  try {
    std::rethrow_exception(error);
  } catch (const Error& ours) {
    return ours.what();
  } catch (const c10::Error& theirs) {
    return c10::str(c10::demangle(typeid(theirs).name()), ": ", theirs.what_without_backtrace());
  } catch (const std::exception& other) {
    return c10::str(c10::demangle(typeid(other).name()), ": ", other.what());
  } catch (...) {
    return "an exception that is not derived from std::exception";
  }
}

void throw_for_samples(std::span<const std::size_t> indices) {
  const std::exception_ptr cause = std::current_exception();
  std::string names = indices.size() == 1 ? "sample " : "samples ";
  for (std::size_t i = 0; i < std::min(indices.size(), kNamedSamples); ++i)
    names += (i == 0 ? "" : ", ") + std::to_string(indices[i]);
  if (indices.size() > kNamedSamples) names += c10::str(", ... (", indices.size(), ")");
  throw NamedFault{c10::str(names, ": ", describe(cause)), cause};  // ours. NOLINT(bugprone-std-exception-baseclass)
}

void Faults::rethrow(std::exception_ptr error) {
  std::string text;
  try {
    std::rethrow_exception(error);
  } catch (const NamedFault& fault) {
    text = fault.text;
    error = fault.cause;
  } catch (...) {
    text = describe(error);
  }
  if (kind_ == WorkerKind::kFork) throw DataError(text);
  const std::lock_guard lock(mutex_);
  if (kept_.size() >= kKeptFaults) kept_.erase(kept_.begin());
  kept_.emplace_back(c10::str("[fault ", next_++, "]"), error);
  throw DataError(kept_.back().first + " " + text);
}

std::exception_ptr Faults::find(const std::string& text) {
  const std::lock_guard lock(mutex_);
  for (auto kept = kept_.begin(); kept != kept_.end(); ++kept) {
    if (text.find(kept->first) == std::string::npos) continue;
    std::exception_ptr error = kept->second;
    kept_.erase(kept);
    return error;
  }
  return nullptr;
}

void settle_process() {
  at::set_num_threads(1);
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  new (&generator.mutex()) std::mutex;  // intentional: whoever held the old one is not here
  mallopt(M_MMAP_THRESHOLD, kLargestSample);
  mallopt(M_TRIM_THRESHOLD, kKeptBytes);
}

std::uint64_t current_seed() { return at::detail::getDefaultCPUGenerator().current_seed(); }

}  // namespace infeed::torch
