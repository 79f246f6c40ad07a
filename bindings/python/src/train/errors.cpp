// The companion's exceptions are Python's own kinds; the engine's stay infeed's.

#include "../errors.h"

#include <cerrno>

#include "binder.h"
#include "infeed/train/saving/error.h"
#include "infeed/train/tensor/error.h"

namespace infeed::python {
namespace {

void translate(const std::exception_ptr& thrown, void* /*payload*/) {
  try {
    std::rethrow_exception(thrown);
  } catch (const RuntimeError& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  } catch (const TypeError& error) {
    PyErr_SetString(PyExc_TypeError, error.what());
  } catch (const ValueError& error) {
    PyErr_SetString(PyExc_ValueError, error.what());
  } catch (const NotImplementedError& error) {
    PyErr_SetString(PyExc_NotImplementedError, error.what());
  } catch (const FileError& error) {
    errno = error.code();  // chooses FileNotFoundError, PermissionError, ...
    PyErr_SetFromErrnoWithFilename(PyExc_OSError, error.path().c_str());
  }
}

}  // namespace

void bind_train_errors(nb::module_& module) {
  bind_errors(module);
  nb::register_exception_translator(translate);
}

}  // namespace infeed::python
