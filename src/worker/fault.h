#pragma once
/// Exceptions as a code and a text, to cross a process, and back.

#include <exception>
#include <string>

namespace infeed {

struct Fault {
  int code = 0;      ///< which type; 0: none
  std::string text;  ///< what(); for foreign types prefixed by the type's demangled name
};

/// Describes the exception. Types of infeed keep their type, std::bad_alloc becomes MemoryError, all else DataError.
[[nodiscard]] Fault capture_fault(const std::exception_ptr& error) noexcept;

/// Throws the exception of that code with `prefix` + text.
[[noreturn]] void throw_fault(int code, const std::string& message);

}  // namespace infeed
