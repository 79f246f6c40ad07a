#include "infeed/base/state.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "infeed/base/error.h"

namespace infeed {

using nlohmann::json;

struct State::Value {
  json object = json::object();  // std::map inside: keys stay sorted

  // The object behind a State, read only; a null pointer is the empty object.
  static const json& of(const State& state) {
    static const json empty = json::object();
    return state.value_ ? state.value_->object : empty;
  }

  static void put(State& state, std::string_view key, json value);

  static const json& find(const State& state, std::string_view key, const char* wanted);

  static State wrap(const json& object) {
    State state;
    state.value_ = std::make_unique<Value>(Value{object});
    return state;
  }
};

namespace {

// Copying, printing and comparing recurse once per level: both limits hold for parsed and for built states.
constexpr int kMaxDepth = 64;
constexpr std::size_t kMaxJsonBytes = std::size_t{64} << 20;

const char* type_name(const json& value) {
  switch (value.type()) {
    case json::value_t::null: return "null";
    case json::value_t::object: return "an object";
    case json::value_t::array: return "a list";
    case json::value_t::string: return "a string";
    case json::value_t::boolean: return "a boolean";
    case json::value_t::number_integer:
    case json::value_t::number_unsigned: return "an integer";
    case json::value_t::number_float: return "a fractional number";
    default: return "of an unknown type";
  }
}

[[noreturn]] void throw_type(std::string_view key, const char* wanted, const json& found) {
  throw StateError(
      fmt::format("state key \"{}\" must be {}, but it is {}: {:.60}. Load a state that the same kind of "
                  "object saved.",
                  key, wanted, type_name(found), found.dump(-1, ' ', false, json::error_handler_t::replace)));
}

[[noreturn]] void throw_missing(std::string_view key, const char* wanted, const std::vector<std::string>& keys) {
  throw StateError(
      fmt::format("state has no key \"{}\", which must be {}; it has [{:.200}]. Load a state that the same "
                  "kind of object saved.",
                  key, wanted, fmt::format("{}", fmt::join(keys, ", "))));
}

int depth_of(const json& value) {
  if (!value.is_structured()) return 0;
  int deepest = 0;
  for (const auto& item : value) deepest = std::max(deepest, depth_of(item));
  return deepest + 1;
}

void check_depth(std::string_view key, const json& nested) {
  if (depth_of(nested) < kMaxDepth) return;
  throw StateError(fmt::format("state key \"{}\" would nest deeper than {} levels.", key, kMaxDepth));
}

// Brackets outside strings, so that a hostile text is refused before anything is built from it.
void check_text_depth(std::string_view text) {
  int depth = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      if (++depth > kMaxDepth)
        throw StateError(fmt::format("state JSON nests deeper than {} levels at byte {}.", kMaxDepth, i));
    } else if (c == '}' || c == ']') {
      --depth;
    }
  }
}

// Throws where the text is not UTF-8: JSON could not carry it.
void check_utf8(std::string_view key, std::string_view text, const char* what) {
  try {
    static_cast<void>(json(text).dump());
  } catch (const json::exception&) {
    throw StateError(fmt::format("the {} of state key {} is not valid UTF-8, which JSON cannot hold.", what,
                                 json(key).dump(-1, ' ', true, json::error_handler_t::replace)));
  }
}

std::int64_t to_int(std::string_view key, const json& value) {
  if (!value.is_number_integer()) throw_type(key, "an integer", value);
  if (value.is_number_unsigned() &&
      value.get<std::uint64_t>() > std::uint64_t{std::numeric_limits<std::int64_t>::max()})
    throw_type(key, "an integer below 2^63", value);
  return value.get<std::int64_t>();
}

}  // namespace

void State::Value::put(State& state, std::string_view key, json value) {
  check_utf8(key, key, "name");
  if (!state.value_) state.value_ = std::make_unique<Value>();
  state.value_->object[std::string(key)] = std::move(value);
}

const json& State::Value::find(const State& state, std::string_view key, const char* wanted) {
  const json& object = of(state);
  const auto found = object.find(std::string(key));
  if (found == object.end()) throw_missing(key, wanted, state.keys());
  return *found;
}

// A null value_ is the empty object: default and moved-from states need no memory.
State::State() = default;
State::State(const State& other) : value_(other.value_ ? std::make_unique<Value>(*other.value_) : nullptr) {}
State::State(State&&) noexcept = default;
State& State::operator=(const State& other) {
  if (this != &other) *this = State(other);
  return *this;
}
State& State::operator=(State&&) noexcept = default;
State::~State() = default;

State State::from_json(std::string_view text) {
  if (text.size() > kMaxJsonBytes)
    throw StateError(fmt::format("state JSON of {} bytes is above the limit of {}.", text.size(), kMaxJsonBytes));
  check_text_depth(text);
  State state;
  state.value_ = std::make_unique<Value>();
  try {
    state.value_->object = json::parse(text);
  } catch (const json::parse_error& fault) {
    throw StateError(fmt::format("state JSON is damaged at byte {}: {}.", fault.byte, fault.what()));
  } catch (const json::exception& fault) {
    throw StateError(fmt::format("state JSON cannot be read: {}.", fault.what()));
  }
  if (!state.value_->object.is_object())
    throw StateError(fmt::format("state JSON must be an object, but it is {}.", type_name(state.value_->object)));
  return state;
}

std::string State::to_json() const { return Value::of(*this).dump(); }

void State::set(std::string_view key, std::int64_t value) { Value::put(*this, key, value); }
void State::set(std::string_view key, std::uint64_t value) { Value::put(*this, key, value); }
void State::set(std::string_view key, bool value) { Value::put(*this, key, value); }

void State::set(std::string_view key, double value) {
  if (!std::isfinite(value))
    throw StateError(fmt::format("state key \"{}\" would be {}, which JSON cannot hold.", key, value));
  Value::put(*this, key, value);
}

void State::set(std::string_view key, std::string_view value) {
  check_utf8(key, value, "text");
  Value::put(*this, key, std::string(value));
}

void State::set(std::string_view key, const std::vector<std::int64_t>& value) { Value::put(*this, key, value); }

void State::set(std::string_view key, const State& value) {
  check_depth(key, Value::of(value));
  Value::put(*this, key, Value::of(value));
}

void State::set(std::string_view key, const std::vector<State>& value) {
  json list = json::array();
  for (const State& item : value) list.push_back(Value::of(item));
  check_depth(key, list);
  Value::put(*this, key, std::move(list));
}

bool State::contains(std::string_view key) const { return Value::of(*this).contains(std::string(key)); }

std::vector<std::string> State::keys() const {
  std::vector<std::string> names;
  for (const auto& item : Value::of(*this).items()) names.push_back(item.key());
  return names;
}

std::int64_t State::get_int(std::string_view key) const { return to_int(key, Value::find(*this, key, "an integer")); }

std::uint64_t State::get_uint(std::string_view key) const {
  const json& value = Value::find(*this, key, "an integer");
  if (!value.is_number_unsigned() && !(value.is_number_integer() && value.get<std::int64_t>() >= 0))
    throw_type(key, "a non-negative integer", value);
  return value.get<std::uint64_t>();
}

bool State::get_bool(std::string_view key) const {
  const json& value = Value::find(*this, key, "a boolean");
  if (!value.is_boolean()) throw_type(key, "a boolean", value);
  return value.get<bool>();
}

double State::get_double(std::string_view key) const {
  const json& value = Value::find(*this, key, "a number");
  if (!value.is_number()) throw_type(key, "a number", value);
  return value.get<double>();
}

std::string State::get_string(std::string_view key) const {
  const json& value = Value::find(*this, key, "a string");
  if (!value.is_string()) throw_type(key, "a string", value);
  return value.get<std::string>();
}

std::vector<std::int64_t> State::get_ints(std::string_view key) const {
  const json& value = Value::find(*this, key, "a list of integers");
  if (!value.is_array()) throw_type(key, "a list of integers", value);
  std::vector<std::int64_t> list;
  list.reserve(value.size());
  for (const json& item : value) list.push_back(to_int(key, item));
  return list;
}

State State::get_state(std::string_view key) const {
  const json& value = Value::find(*this, key, "an object");
  if (!value.is_object()) throw_type(key, "an object", value);
  return Value::wrap(value);
}

std::vector<State> State::get_states(std::string_view key) const {
  const json& value = Value::find(*this, key, "a list of objects");
  if (!value.is_array()) throw_type(key, "a list of objects", value);
  std::vector<State> list;
  for (const json& item : value) {
    if (!item.is_object()) throw_type(key, "a list of objects only", item);
    list.push_back(Value::wrap(item));
  }
  return list;
}

bool operator==(const State& a, const State& b) { return State::Value::of(a) == State::Value::of(b); }

}  // namespace infeed
