#pragma once
/// What every bind_… of the companion works with.

#include <string>
#include <utility>

#include "convert.h"
#include "infeed/train/autograd/in_place.h"

namespace infeed::python {

/// From this many elements on an operation lets other Python threads run: giving the GIL away costs as much as
/// a few thousand additions.
inline constexpr std::int64_t kWorthUnlocking = 16384;

/// Drops the GIL while it lives, if the work is worth it.
class Unlocked {
 public:
  explicit Unlocked(std::int64_t numel) {
    if (numel >= kWorthUnlocking) state_ = PyEval_SaveThread();
  }
  explicit Unlocked(const Tensor& tensor) : Unlocked(tensor.defined() ? tensor.numel() : 0) {}
  ~Unlocked() {
    if (state_ != nullptr) PyEval_RestoreThread(state_);
  }
  Unlocked(const Unlocked&) = delete;
  Unlocked& operator=(const Unlocked&) = delete;

 private:
  PyThreadState* state_ = nullptr;
};

struct Binder {
  nb::module_& module;
  nb::class_<TensorObject>& tensor;

  /// As a function, and as a method of Tensor: train.exp(x), x.exp().
  template <class F>
  void both(const char* name, F f) const {
    module.def(name, f);
    tensor.def(name, f);
  }
  /// `self`: the tensor's name as an argument of the function.
  template <class F, class... Extra>
  void both(const char* name, F f, const nb::arg& self, const Extra&... extra) const {
    module.def(name, f, self, extra...);
    tensor.def(name, f, extra...);
  }

  /// The same, and in place: x.exp_().
  template <Tensor (*op)(const Tensor&)>
  void unary(const char* name) const {
    both(
        name,
        [](const Tensor& x) {
          const Unlocked unlocked(x);
          return op(x);
        },
        "input"_a);
    tensor.def((std::string(name) + "_").c_str(), [](Tensor x) {
      const Unlocked unlocked(x);
      return in_place(x, {}, [](const Tensor& t) { return op(t); });
    });
  }

  template <Tensor (*op)(const Tensor&, const Tensor&)>
  void binary(const char* name, bool with_in_place = true, const char* other = "other") const {
    both(
        name,
        [](const Operand& a, const Operand& b) {
          const Unlocked unlocked(a.tensor);
          return op(a, b);
        },
        "input"_a, nb::arg(other));
    if (with_in_place) in_place_binary<op>((std::string(name) + "_").c_str(), nb::arg(other));
  }

  template <Tensor (*op)(const Tensor&, const Tensor&), class... Extra>
  void in_place_binary(const char* name, const Extra&... extra) const {
    tensor.def(
        name,
        [](Tensor x, const Operand& other) {
          const Unlocked unlocked(x);
          return in_place(x, {other.tensor}, [&](const Tensor& t) { return op(t, other); });
        },
        extra...);
  }

  /// `x + y` and `y + x`.
  template <Tensor (*op)(const Tensor&, const Tensor&)>
  void infix(const char* name, const char* reflected = nullptr) const {
    tensor.def(
        name,
        [](const Tensor& a, const Operand& b) {
          const Unlocked unlocked(a);
          return op(a, b);
        },
        nb::is_operator());
    if (reflected != nullptr)
      tensor.def(
          reflected, [](const Tensor& a, const Operand& b) { return op(b, a); }, nb::is_operator());
  }
};

void bind_train_errors(nb::module_& module);
void bind_modes(nb::module_& module);
void bind_tensor(const Binder& to);
void bind_create(const Binder& to);
void bind_index(const Binder& to);
void bind_views(const Binder& to);
void bind_elementwise(const Binder& to);
void bind_reduction(const Binder& to);
void bind_joining(const Binder& to);
void bind_matmul(const Binder& to);
void bind_random(const Binder& to);
void bind_autograd(const Binder& to);
void bind_function(const Binder& to);
void bind_nn(const Binder& to);
void bind_optim(const Binder& to);
void bind_autocast(nb::module_& module);
void bind_saving(nb::module_& module);
void bind_devices(nb::module_& module);

}  // namespace infeed::python
