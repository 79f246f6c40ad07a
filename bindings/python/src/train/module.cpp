// infeed.train._train: one source a noun, joined here.

#include "binder.h"
#include "types.h"

namespace infeed::python {

PyType_Slot* buffer_slots();

}  // namespace infeed::python

NB_MODULE(_train, module) {
  using namespace infeed::python;
  nb::set_leak_warnings(false);  // tensors may live on in modules at the end
  module.doc() = "infeed's companion. Use it through the package infeed.train.";
  bind_train_errors(module);
  bind_types(module);
  bind_modes(module);
  bind_autocast(module);
  nb::class_<TensorObject> tensor(module, "Tensor", nb::type_slots(buffer_slots()), nb::dynamic_attr(),
                                  nb::is_weak_referenceable(), "Numbers of one dtype, and their place in a graph.");
  tensor_type = reinterpret_cast<PyTypeObject*>(tensor.ptr());
  const Binder to{module, tensor};
  bind_tensor(to);
  bind_create(to);
  bind_index(to);
  bind_views(to);
  bind_elementwise(to);
  bind_reduction(to);
  bind_joining(to);
  bind_matmul(to);
  bind_random(to);
  bind_autograd(to);
  bind_function(to);
  bind_nn(to);
  bind_optim(to);
  bind_saving(module);
  bind_devices(module);
}
