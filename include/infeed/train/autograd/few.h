#pragma once
/// A list that is nearly always short.

#include <array>
#include <cstddef>
#include <utility>
#include <vector>

namespace infeed {

/// Up to N items lie in the object itself; more go to the heap, all together.
template <class T, std::size_t N>
class Few {
 public:
  Few() = default;
  Few(Few&& other) noexcept
      : here_(std::move(other.here_)), heap_(std::move(other.heap_)), size_(std::exchange(other.size_, 0)) {}
  Few& operator=(Few&&) = delete;

  void push_back(T item) {
    if (size_ < N) {
      here_[size_++] = std::move(item);
      return;
    }
    if (size_ == N) heap_.assign(std::move_iterator(here_.begin()), std::move_iterator(here_.end()));
    heap_.push_back(std::move(item));
    ++size_;
  }

  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
  [[nodiscard]] T* data() noexcept { return size_ > N ? heap_.data() : here_.data(); }
  [[nodiscard]] const T* data() const noexcept { return size_ > N ? heap_.data() : here_.data(); }
  [[nodiscard]] T* begin() noexcept { return data(); }
  [[nodiscard]] T* end() noexcept { return data() + size_; }
  [[nodiscard]] const T* begin() const noexcept { return data(); }
  [[nodiscard]] const T* end() const noexcept { return data() + size_; }
  [[nodiscard]] const T& operator[](std::size_t i) const noexcept { return data()[i]; }

 private:
  std::array<T, N> here_{};
  std::vector<T> heap_;
  std::size_t size_ = 0;
};

}  // namespace infeed
