#pragma once
/// Checkpoints: a small JSON object.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "infeed/base/export.h"

namespace infeed {

/// A JSON object with typed access. Values copy. Keys are the saved object's own; a reader that asks for a missing key,
/// or for another type, gets a StateError that names key and type. Threads: as a standard container.
class INFEED_API State {
 public:
  State();
  State(const State&);
  State(State&&) noexcept;
  State& operator=(const State&);
  State& operator=(State&&) noexcept;
  ~State();

  /// Parses a JSON object; throws StateError with the position of a fault.
  [[nodiscard]] static State from_json(std::string_view json);
  /// Compact JSON, keys sorted: equal states give equal text. Integers stay exact over the whole 64 bits.
  [[nodiscard]] std::string to_json() const;

  /// Replaces what stood under `key`. A double must be finite, text UTF-8: StateError else.
  void set(std::string_view key, std::int64_t value);
  void set(std::string_view key, std::uint64_t value);
  void set(std::string_view key, int value) { set(key, static_cast<std::int64_t>(value)); }
  void set(std::string_view key, bool value);
  void set(std::string_view key, double value);
  void set(std::string_view key, std::string_view value);
  void set(std::string_view key, const char* value) { set(key, std::string_view(value)); }
  void set(std::string_view key, const std::vector<std::int64_t>& value);
  void set(std::string_view key, const State& value);               ///< a nested object
  void set(std::string_view key, const std::vector<State>& value);  ///< a list of objects

  [[nodiscard]] bool contains(std::string_view key) const;
  [[nodiscard]] std::vector<std::string> keys() const;  ///< sorted
  [[nodiscard]] std::int64_t get_int(std::string_view key) const;
  [[nodiscard]] std::uint64_t get_uint(std::string_view key) const;
  [[nodiscard]] bool get_bool(std::string_view key) const;
  [[nodiscard]] double get_double(std::string_view key) const;  ///< integers convert
  [[nodiscard]] std::string get_string(std::string_view key) const;
  [[nodiscard]] std::vector<std::int64_t> get_ints(std::string_view key) const;
  [[nodiscard]] State get_state(std::string_view key) const;
  [[nodiscard]] std::vector<State> get_states(std::string_view key) const;

  friend INFEED_API bool operator==(const State& a, const State& b);

 private:
  struct Value;
  std::unique_ptr<Value> value_;
};

}  // namespace infeed
