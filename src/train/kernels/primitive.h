#pragma once
/// oneDNN primitives that are kept: making one costs 3 us even when oneDNN has its code, running a small one 0.4 us.

#include <array>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/check.h"
#include "infeed/train/tensor/error.h"
#include "train/kernels/dnnl_api.h"
#include "train/kernels/parallel.h"

namespace infeed::kernels {

/// What makes two calls use one primitive: shapes, strides, attributes.
class Key {
 public:
  Key& add(std::int64_t value) {
    INFEED_CHECK(count_ < kCapacity, "a primitive's key has more than {} words", kCapacity);
    words_[count_++] = value;
    hash_ = (hash_ ^ static_cast<std::uint64_t>(value)) * 0x100000001b3U;
    return *this;
  }
  Key& add(const Dims& dims) {
    add(dims.ndim());
    for (const std::int64_t value : dims) add(value);
    return *this;
  }
  Key& add(const Tensor& tensor) { return add(tensor.shape()).add(tensor.strides()); }

  friend bool operator==(const Key& a, const Key& b) noexcept {
    return a.hash_ == b.hash_ && a.count_ == b.count_ &&
           std::memcmp(a.words_.data(), b.words_.data(), a.count_ * sizeof(std::int64_t)) == 0;
  }
  struct Hash {
    std::size_t operator()(const Key& key) const noexcept { return key.hash_ ^ (key.hash_ >> 32); }
  };

 private:
  static constexpr std::size_t kCapacity = 64;
  std::array<std::int64_t, kCapacity> words_;
  std::size_t count_ = 0;
  std::uint64_t hash_ = 0xcbf29ce484222325U;
};

/// A primitive with its memory objects: a call only sets their addresses. Threads: one; each thread has its own cache.
class Primitive {
 public:
  struct Argument {
    int id;  ///< DNNL_ARG_SRC, ...
    dnnl::memory::desc desc;
  };
  struct Value {
    int id;
    const void* data;
  };

  template <class Desc>
  Primitive(const dnnl::primitive& primitive, const Desc& desc, std::initializer_list<Argument> arguments)
      : Primitive(primitive, arguments, desc.scratchpad_desc()) {}

  /// Runs it on these addresses, one for each argument, in any order.
  void run(std::span<const Value> values);
  void run(std::initializer_list<Value> values) { run(std::span(values.begin(), values.size())); }
  [[nodiscard]] dnnl::memory::desc desc(int id) const;

 private:
  Primitive(const dnnl::primitive& primitive, std::initializer_list<Argument> arguments,
            const dnnl::memory::desc& scratchpad);

  dnnl::primitive primitive_;
  std::vector<dnnl::memory> memories_;
  std::vector<dnnl_exec_arg_t> arguments_;  // the same, as the C interface takes them
  std::size_t scratchpad_bytes_;            // its argument is the last, if not 0
};

/// A copy between two descriptions of one tensor; empty where they are equal.
class Relayout {
 public:
  Relayout(const dnnl::memory::desc& from, const dnnl::memory::desc& to);
  [[nodiscard]] bool needed() const noexcept { return primitive_ != nullptr; }
  [[nodiscard]] std::size_t nbytes() const noexcept { return bytes_; }  ///< of the copy
  void run(const void* from, void* to) { primitive_->run({{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}}); }

 private:
  std::unique_ptr<Primitive> primitive_;
  std::size_t bytes_;
};

/// Throws RuntimeError: oneDNN has no such primitive.
[[noreturn]] void throw_refusal(const dnnl::error& error);

/// The kept primitives of one operation on one thread. Emptied when kCapacity shapes were seen: bounded, and cheap to
/// refill since oneDNN keeps the code.
template <class Entry>
class Cache {
 public:
  template <class Make>
  Entry& get(const Key& key, Make&& make) {
    if (const int threads = num_threads(); threads != threads_) {  // primitives are made for a number of threads
      entries_.clear();
      threads_ = threads;
    }
    if (const auto found = entries_.find(key); found != entries_.end()) return *found->second;
    if (entries_.size() >= kCapacity) entries_.clear();
    watch_forks();
    try {
      return *entries_.emplace(key, std::make_unique<Entry>(make())).first->second;
    } catch (const dnnl::error& error) {
      throw_refusal(error);
    }
  }

 private:
  static constexpr std::size_t kCapacity = 1024;
  int threads_ = 0;
  std::unordered_map<Key, std::unique_ptr<Entry>, Key::Hash> entries_;
};

}  // namespace infeed::kernels
