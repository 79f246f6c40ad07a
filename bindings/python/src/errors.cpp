#include "errors.h"

#include <typeinfo>

#include "infeed/base/error.h"

namespace infeed::python {
namespace {

namespace nb = nanobind;

void raise(const char* type, const std::exception& error) noexcept try {
  const nb::object python_type = nb::module_::import_("infeed.errors").attr(type);
  PyErr_SetString(python_type.ptr(), error.what());
} catch (nb::python_error& failed) {
  failed.restore();
}

void raise_decode_error(const DecodeError& error) noexcept try {
  const nb::object type = nb::module_::import_("infeed.errors").attr("DecodeError");
  const nb::object value = type(error.what(), to_string(error.fault()));
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
