#include "errors.h"

#include <cstring>
#include <typeinfo>

#include "infeed/base/error.h"

namespace infeed::python {
namespace {

namespace nb = nanobind;

/// A message may name a file, whose name may be any bytes: what is not UTF-8 is shown as \xFF.
nb::object text_of(const std::exception& error) {
  const char* what = error.what();
  const auto size = static_cast<Py_ssize_t>(std::strlen(what));
  nb::object text = nb::steal(PyUnicode_DecodeUTF8(what, size, "backslashreplace"));
  if (!text.is_valid()) nb::raise_python_error();
  return text;
}

void raise(const char* type, const std::exception& error) noexcept try {
  const nb::object python_type = nb::module_::import_("infeed.errors").attr(type);
  PyErr_SetObject(python_type.ptr(), text_of(error).ptr());
} catch (nb::python_error& failed) {
  failed.restore();
}

void raise_decode_error(const DecodeError& error) noexcept try {
  const nb::object type = nb::module_::import_("infeed.errors").attr("DecodeError");
  const nb::object value = type(text_of(error), to_string(error.fault()));
  PyErr_SetObject(type.ptr(), value.ptr());
} catch (nb::python_error& failed) {
  failed.restore();
}

void translate(const std::exception_ptr& thrown, void* /*payload*/) {
  try {
    std::rethrow_exception(thrown);
  } catch (const DecodeError& error) {
    raise_decode_error(error);
  } catch (const ConfigError& error) {
    raise("ConfigError", error);
  } catch (const IndexError& error) {
    raise("IndexError", error);
  } catch (const DataError& error) {
    raise("DataError", error);
  } catch (const WorkerError& error) {
    raise("WorkerError", error);
  } catch (const TimeoutError& error) {
    raise("TimeoutError", error);
  } catch (const MemoryError& error) {
    raise("MemoryError", error);
  } catch (const StateError& error) {
    raise("StateError", error);
  } catch (const DeviceError& error) {
    raise("DeviceError", error);
  } catch (const Error& error) {
    if (typeid(error) != typeid(Error)) throw;  // of another library, which has a translator of its own
    raise("Error", error);
  }
}

}  // namespace

void bind_errors(nb::module_& /*module*/) { nb::register_exception_translator(translate); }

}  // namespace infeed::python
