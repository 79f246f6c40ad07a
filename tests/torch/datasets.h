#pragma once
// Datasets of torch::data's interface, small enough that a test knows every value.

#include <signal.h>
#include <sys/mman.h>
#include <torch/data/datasets.h>
#include <torch/data/samplers.h>
#include <torch/data/transforms.h>
#include <unistd.h>

#include <atomic>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace infeed::testing {

namespace td = ::torch::data;

/// Sample i: [3, 4] of i + 0.25, and i.
struct Numbers : td::datasets::Dataset<Numbers> {
  explicit Numbers(std::size_t size) : size_(size) {}
  td::Example<> get(std::size_t index) override {
    return {at::full({3, 4}, static_cast<double>(index) + 0.25, at::kFloat),
            at::scalar_tensor(static_cast<std::int64_t>(index), at::kLong)};
  }
  std::optional<std::size_t> size() const override { return size_; }

 private:
  std::size_t size_;
};

/// The same, without targets.
struct Bare : td::datasets::Dataset<Bare, td::TensorExample> {
  td::TensorExample get(std::size_t index) override { return at::full({2}, static_cast<double>(index)); }
  std::optional<std::size_t> size() const override { return 10; }
};

/// Makes batches itself, backwards: whoever called get() in turn would be found out.
struct Bulk : td::datasets::Dataset<Bulk> {
  td::Example<> get(std::size_t /*index*/) override { throw std::logic_error("get() was called"); }
  std::vector<td::Example<>> get_batch(c10::ArrayRef<std::size_t> indices) override {
    std::vector<td::Example<>> batch;
    for (auto index = indices.rbegin(); index != indices.rend(); ++index) batch.push_back(Numbers(0).get(*index));
    return batch;
  }
  std::optional<std::size_t> size() const override { return 12; }
};

/// Does something odd at one index.
template <typename Act>
struct Odd : td::datasets::Dataset<Odd<Act>> {
  Odd(std::size_t at, Act act) : at_(at), act_(act) {}
  td::Example<> get(std::size_t index) override {
    if (index == at_) act_();
    return Numbers(0).get(index);
  }
  std::optional<std::size_t> size() const override { return 16; }

 private:
  std::size_t at_;
  Act act_;
};

/// The batches that it is given.
struct ListSampler : td::samplers::Sampler<> {
  explicit ListSampler(std::vector<std::vector<std::size_t>> batches) : batches_(std::move(batches)) {}
  void reset(std::optional<std::size_t> /*size*/) override { at_ = 0; }
  std::optional<std::vector<std::size_t>> next(std::size_t /*batch_size*/) override {
    if (at_ == batches_.size()) return std::nullopt;
    return batches_[at_++];
  }
  void save(::torch::serialize::OutputArchive& /*archive*/) const override {}
  void load(::torch::serialize::InputArchive& /*archive*/) override {}

 private:
  std::vector<std::vector<std::size_t>> batches_;
  std::size_t at_ = 0;
};

/// Counts down; the workers share it.
struct Countdown : td::datasets::StatefulDataset<Countdown, std::vector<td::Example<>>> {
  explicit Countdown(int from) : from_(from) {}
  Countdown(const Countdown& other) : from_(other.from_), left_(other.left_.load()) {}
  std::optional<std::vector<td::Example<>>> get_batch(std::size_t size) override {
    std::vector<td::Example<>> batch;
    for (std::size_t i = 0; i < size; ++i) {
      const int number = left_--;
      if (number <= 0) break;
      batch.push_back(Numbers(0).get(static_cast<std::size_t>(number)));
    }
    if (batch.empty()) return std::nullopt;
    return batch;
  }
  void reset() override { left_ = from_; }
  std::optional<std::size_t> size() const override { return static_cast<std::size_t>(from_); }
  void save(::torch::serialize::OutputArchive& /*archive*/) const override {}
  void load(::torch::serialize::InputArchive& /*archive*/) override {}

 private:
  int from_;
  std::atomic<int> left_ = 0;
};

/// Has no more at its second batch, and yet more after.
struct Gap : td::datasets::StatefulDataset<Gap, at::Tensor> {
  std::optional<at::Tensor> get_batch(std::size_t /*size*/) override {
    if (++asked_ == 2) return std::nullopt;
    return at::full({1}, asked_);
  }
  void reset() override { asked_ = 0; }
  std::optional<std::size_t> size() const override { return std::nullopt; }
  void save(::torch::serialize::OutputArchive& /*archive*/) const override {}
  void load(::torch::serialize::InputArchive& /*archive*/) override {}

 private:
  int asked_ = 0;
};

/// Serves batches of the size asked for; the sampler says when an epoch ends.
struct Tap : td::datasets::StreamDataset<Tap, at::Tensor> {
  at::Tensor get_batch(std::size_t size) override { return at::ones({static_cast<std::int64_t>(size)}); }
  std::optional<std::size_t> size() const override { return std::nullopt; }
};

/// Three chunks of four of Numbers' samples. Made to throw at a chunk.
struct Chunks : td::datasets::ChunkDataReader<td::Example<>> {
  using BatchType = std::vector<td::Example<>>;
  explicit Chunks(std::size_t faulty = 99) : faulty_(faulty) {}
  std::vector<td::Example<>> read_chunk(std::size_t chunk) override {
    if (chunk == faulty_) throw std::runtime_error("chunk " + std::to_string(chunk) + " is torn");
    std::vector<td::Example<>> examples;
    for (std::size_t i = 0; i < 4; ++i) examples.push_back(Numbers(0).get(4 * chunk + i));
    return examples;
  }
  std::size_t chunk_count() override { return 3; }
  void reset() override {}

 private:
  std::size_t faulty_;
};

/// A batch of the user's own.
struct Boxes {
  at::Tensor image;
  std::vector<at::Tensor> corners;
  std::string path;
  double scale = 0;
};
inline auto members(Boxes& boxes) { return std::tie(boxes.image, boxes.corners, boxes.path, boxes.scale); }

/// A flag that forked workers share; as long as the process.
class SharedFlag {
 public:
  [[nodiscard]] bool test() const { return flag_->load(); }
  /// What it was before.
  bool set() const { return flag_->exchange(true); }

 private:
  std::atomic<bool>* flag_ =
      new (mmap(nullptr, sizeof(std::atomic<bool>), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0))
          std::atomic<bool>(false);
};

/// True once over all processes.
class Once {
 public:
  [[nodiscard]] bool operator()() const { return !flag_.set(); }

 private:
  SharedFlag flag_;
};

/// Holds whoever waits, in any process, until it is opened.
class SharedGate {
 public:
  void wait() const {
    while (!open_.test()) usleep(1000);
  }
  void open() const { static_cast<void>(open_.set()); }

 private:
  SharedFlag open_;
};

}  // namespace infeed::testing
