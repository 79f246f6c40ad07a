#include "worker/fault.h"

#include <cxxabi.h>
#include <fmt/format.h>

#include <cstdlib>
#include <memory>
#include <new>
#include <typeinfo>

#include "infeed/base/error.h"

namespace infeed {
namespace {

// Both sides are of one version (boot.h checks), so the numbers may change between versions.
enum FaultCode : int {
  kNone,
  kError,
  kConfig,
  kIndex,
  kData,
  kWorker,
  kTimeout,
  kMemory,
  kState,
  kDevice,
  kDecode,  // + the DecodeFault; last
};

std::string demangled(const char* name) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> text(abi::__cxa_demangle(name, nullptr, nullptr, &status), &std::free);
  return status == 0 && text != nullptr ? text.get() : name;
}

// Of the exception that is being handled; "an exception" for foreign ones (of another language).
std::string current_type() {
  const std::type_info* type = abi::__cxa_current_exception_type();
  return type != nullptr ? demangled(type->name()) : "an exception";
}

Fault describe(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const DecodeError& e) {
    return {kDecode + static_cast<int>(e.fault()), e.what()};
  } catch (const ConfigError& e) {
    return {kConfig, e.what()};
  } catch (const IndexError& e) {
    return {kIndex, e.what()};
  } catch (const DataError& e) {
    return {kData, e.what()};
  } catch (const WorkerError& e) {
    return {kWorker, e.what()};
  } catch (const TimeoutError& e) {
    return {kTimeout, e.what()};
  } catch (const MemoryError& e) {
    return {kMemory, e.what()};
  } catch (const StateError& e) {
    return {kState, e.what()};
  } catch (const DeviceError& e) {
    return {kDevice, e.what()};
  } catch (const Error& e) {
    return {kError, e.what()};
  } catch (const std::bad_alloc& e) {
    return {kMemory, fmt::format("{} (out of memory)", e.what())};
  } catch (const std::exception& e) {
    return {kData, fmt::format("{}: {}", current_type(), e.what())};
  } catch (...) {
    return {kData, fmt::format("{} that is not derived from std::exception", current_type())};
  }
}

}  // namespace

Fault capture_fault(const std::exception_ptr& error) noexcept {
  if (!error) return {};
  try {
    return describe(error);
  } catch (...) {
    return {kMemory, {}};  // no memory even for the text
  }
}

void throw_fault(int code, const std::string& message) {
  switch (code) {
    case kConfig: throw ConfigError(message);
    case kIndex: throw IndexError(message);
    case kData: throw DataError(message);
    case kWorker: throw WorkerError(message);
    case kTimeout: throw TimeoutError(message);
    case kMemory: throw MemoryError(message);
    case kState: throw StateError(message);
    case kDevice: throw DeviceError(message);
    default: break;
  }
  if (code >= kDecode && code <= kDecode + static_cast<int>(DecodeFault::kCorrupt))
    throw DecodeError(static_cast<DecodeFault>(code - kDecode), message);
  throw Error(message);
}

}  // namespace infeed
