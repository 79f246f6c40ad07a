// Random numbers: PyTorch's for the same seed.

#include "infeed/train/tensor/random.h"

#include "binder.h"
#include "infeed/train/autograd/creation.h"

namespace infeed::python {
namespace {

Tensor tracked(Tensor x, bool requires_grad) {
  if (requires_grad) x.set_requires_grad(true);
  return x;
}

using Draw = Tensor (*)(const Shape&, const TensorOptions&, Generator*);

template <Draw draw>
void bind_draw(const Binder& to, const char* name) {
  to.module.def(
      name,
      [](const nb::args& size, Generator* generator, Dtype dtype, Device device, bool requires_grad) {
        return tracked(draw(sizes_of(size), options_of(dtype, device), generator), requires_grad);
      },
      "size"_a, nb::kw_only(), "generator"_a = nb::none(), "dtype"_a = nb::none(), "device"_a = nb::none(),
      "requires_grad"_a = false);
  to.module.def((std::string(name) + "_like").c_str(),
                [](const Tensor& x, Dtype dtype, Device device, bool requires_grad) {
                  const TensorOptions options(dtype.value_or(x.dtype()), device.value_or(x.device()));
                  return tracked(draw(x.shape(), options, nullptr), requires_grad);
                },
                "input"_a, nb::kw_only(), "dtype"_a = nb::none(), "device"_a = nb::none(), "requires_grad"_a = false);
}

// randint(high, size), randint(low, high, size).
Tensor random_integers(std::int64_t low, const nb::object& high, const std::optional<Sizes>& size, Generator* generator,
                       Dtype dtype, Device device) {
  const TensorOptions options = options_of(dtype.value_or(DType::kInt64), device);
  if (size) return randint(low, nb::cast<std::int64_t>(high), *size, options, generator);
  Sizes shape;
  if (!to_sizes(high, shape)) throw nb::type_error("randint(): size is missing");
  return randint(0, low, shape, options, generator);
}

void bind_in_place(nb::class_<TensorObject>& cls) {
  cls.def(
         "uniform_", [](Tensor x, double low, double high, Generator* g) { return uniform_(x, low, high, g); },
         "from_"_a = 0.0, "to"_a = 1.0, nb::kw_only(), "generator"_a = nb::none())
      .def(
          "normal_", [](Tensor x, double mean, double std, Generator* g) { return normal_(x, mean, std, g); },
          "mean"_a = 0.0, "std"_a = 1.0, nb::kw_only(), "generator"_a = nb::none())
      .def(
          "bernoulli_", [](Tensor x, double p, Generator* g) { return bernoulli_(x, p, g); }, "p"_a = 0.5,
          nb::kw_only(), "generator"_a = nb::none());
}

void bind_generator(nb::module_& module) {
  nb::class_<Generator>(module, "Generator", "A stream of random numbers: PyTorch's CPU generator.")
      .def(
          "__init__", [](Generator* self, const nb::object& /*device*/) { new (self) Generator(); },
          "device"_a = nb::none())
      .def(
          "manual_seed",
          [](Generator& self, std::int64_t seed) -> Generator& {
            self.manual_seed(static_cast<std::uint64_t>(seed));
            return self;
          },
          nb::rv_policy::reference)
      .def("initial_seed", &Generator::initial_seed)
      .def("get_state", &Generator::get_state)
      .def(
          "set_state",
          [](Generator& self, const Tensor& state) -> Generator& {
            self.set_state(state);
            return self;
          },
          nb::rv_policy::reference);
  module.def("get_rng_state", [] { return default_generator().get_state(); });
  module.def(
      "set_rng_state", [](const Tensor& state) { default_generator().set_state(state); }, "new_state"_a);
  module.attr("default_generator") = nb::cast(&default_generator(), nb::rv_policy::reference);
  module.def(
      "manual_seed",
      [](std::int64_t seed) {
        manual_seed(static_cast<std::uint64_t>(seed));
        return nb::cast(&default_generator(), nb::rv_policy::reference);
      },
      "seed"_a);
  module.def("initial_seed", [] { return default_generator().initial_seed(); });
}

}  // namespace

void bind_random(const Binder& to) {
  bind_generator(to.module);
  bind_draw<rand>(to, "rand");
  bind_draw<randn>(to, "randn");
  bind_in_place(to.tensor);
  to.module.def("randint", random_integers, "low"_a, "high"_a, "size"_a = nb::none(), nb::kw_only(),
                "generator"_a = nb::none(), "dtype"_a = nb::none(), "device"_a = nb::none());
  to.module.def(
      "randperm",
      [](std::int64_t n, Generator* generator, Dtype dtype, Device device) {
        const Tensor made = randperm(n, dtype.value_or(DType::kInt64), generator);
        return device ? made.to(options_of({}, device)) : made;
      },
      "n"_a, nb::kw_only(), "generator"_a = nb::none(), "dtype"_a = nb::none(), "device"_a = nb::none());
  to.both(
      "bernoulli", [](const Tensor& p, Generator* generator) { return bernoulli(p, generator); }, "input"_a,
      nb::kw_only(), "generator"_a = nb::none());
}

}  // namespace infeed::python
