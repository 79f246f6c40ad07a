#pragma once
/// Which types may be a batch of a data loader: tensors, numbers, strings, Example, and containers and structs of these.
///
/// A struct of your own gets a function beside it, found by its namespace:
///
///   struct Boxes { at::Tensor image, corners; std::string path; };
///   inline auto members(Boxes& boxes) { return std::tie(boxes.image, boxes.corners, boxes.path); }

#include <torch/data/example.h>

#include <array>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "infeed/torch/message.h"

namespace infeed::torch {

template <typename T>
concept HasMembers = requires(T& value) {
  members(value);
};

/// Primary: says what is missing.
template <typename T>
struct Codec {
  static_assert(HasMembers<T>,
                "infeed::torch: this type cannot come from a worker. Put a function `auto members(T& value) { return "
                "std::tie(value.a, value.b); }` beside it, that names all of its members.");
  static_assert(std::is_default_constructible_v<T>,
                "infeed::torch: a type with members() needs a default constructor.");

  static void write(MessageWriter& to, const T& value) {
    std::apply([&](auto&... member) { (Codec<std::decay_t<decltype(member)>>::write(to, member), ...); },
               members(const_cast<T&>(value)));
  }
  static T read(MessageReader& from) {
    T value;
    std::apply([&](auto&... member) { ((member = Codec<std::decay_t<decltype(member)>>::read(from)), ...); },
               members(value));
    return value;
  }
  template <typename F>
  static void each_tensor(T& value, const F& f) {
    std::apply([&](auto&... member) { (Codec<std::decay_t<decltype(member)>>::each_tensor(member, f), ...); },
               members(value));
  }
};

template <>
struct Codec<at::Tensor> {
  static void write(MessageWriter& to, const at::Tensor& value) { to.tensor(value); }
  static at::Tensor read(MessageReader& from) { return from.tensor(); }
  template <typename F>
  static void each_tensor(at::Tensor& value, const F& f) {
    f(value);
  }
};

template <typename T>
requires(std::is_arithmetic_v<T> || std::is_enum_v<T>) struct Codec<T> {
  static void write(MessageWriter& to, const T& value) { to.value(value); }
  static T read(MessageReader& from) { return from.value<T>(); }
  template <typename F>
  static void each_tensor(T& /*value*/, const F& /*f*/) {}
};

template <>
struct Codec<std::string> {
  static void write(MessageWriter& to, const std::string& value) {
    to.count(value.size());
    to.bytes(std::as_bytes(std::span(value)));
  }
  static std::string read(MessageReader& from) {
    const std::span<const std::byte> text = from.bytes(from.count());
    return {reinterpret_cast<const char*>(text.data()), text.size()};
  }
  template <typename F>
  static void each_tensor(std::string& /*value*/, const F& /*f*/) {}
};

template <typename T>
struct Codec<std::vector<T>> {
  static void write(MessageWriter& to, const std::vector<T>& items) {
    to.count(items.size());
    for (const auto& item : items) Codec<T>::write(to, item);
  }
  static std::vector<T> read(MessageReader& from) {
    std::vector<T> items;
    for (std::size_t left = from.count(); left > 0; --left) items.push_back(Codec<T>::read(from));
    return items;
  }
  template <typename F>
  static void each_tensor(std::vector<T>& items, const F& f) {
    if constexpr (!std::is_arithmetic_v<T>) {
      for (T& item : items) Codec<T>::each_tensor(item, f);
    }
  }
};

template <typename T>
struct Codec<std::optional<T>> {
  static void write(MessageWriter& to, const std::optional<T>& value) {
    to.value(value.has_value());
    if (value) Codec<T>::write(to, *value);
  }
  static std::optional<T> read(MessageReader& from) {
    if (!from.value<bool>()) return std::nullopt;
    return Codec<T>::read(from);
  }
  template <typename F>
  static void each_tensor(std::optional<T>& value, const F& f) {
    if (value) Codec<T>::each_tensor(*value, f);
  }
};

/// Arrays, pairs, tuples: what std::apply takes.
template <typename Tuple>
struct TupleCodec {
  template <std::size_t i>
  using At = Codec<std::tuple_element_t<i, Tuple>>;
  using Places = std::make_index_sequence<std::tuple_size_v<Tuple>>;

  static void write(MessageWriter& to, const Tuple& value) {
    [&]<std::size_t... i>(std::index_sequence<i...>) { (At<i>::write(to, std::get<i>(value)), ...); }
    (Places());
  }
  static Tuple read(MessageReader& from) {
    return [&]<std::size_t... i>(std::index_sequence<i...>) { return Tuple{At<i>::read(from)...}; }
    (Places());
  }
  template <typename F>
  static void each_tensor(Tuple& value, const F& f) {
    [&]<std::size_t... i>(std::index_sequence<i...>) { (At<i>::each_tensor(std::get<i>(value), f), ...); }
    (Places());
  }
};
template <typename T, std::size_t n>
struct Codec<std::array<T, n>> : TupleCodec<std::array<T, n>> {};
template <typename A, typename B>
struct Codec<std::pair<A, B>> : TupleCodec<std::pair<A, B>> {};
template <typename... T>
struct Codec<std::tuple<T...>> : TupleCodec<std::tuple<T...>> {};

template <typename Map>
struct MapCodec {
  using Key = typename Map::key_type;
  using Mapped = typename Map::mapped_type;

  static void write(MessageWriter& to, const Map& map) {
    to.count(map.size());
    for (const auto& [key, mapped] : map) {
      Codec<Key>::write(to, key);
      Codec<Mapped>::write(to, mapped);
    }
  }
  static Map read(MessageReader& from) {
    Map map;
    for (std::size_t left = from.count(); left > 0; --left) {
      Key key = Codec<Key>::read(from);
      map.emplace(std::move(key), Codec<Mapped>::read(from));
    }
    return map;
  }
  template <typename F>
  static void each_tensor(Map& map, const F& f) {
    for (auto& [key, mapped] : map) Codec<Mapped>::each_tensor(mapped, f);
  }
};
template <typename... T>
struct Codec<std::map<T...>> : MapCodec<std::map<T...>> {};
template <typename... T>
struct Codec<std::unordered_map<T...>> : MapCodec<std::unordered_map<T...>> {};

template <typename Data, typename Target>
struct Codec<::torch::data::Example<Data, Target>> {
  using Example = ::torch::data::Example<Data, Target>;
  static void write(MessageWriter& to, const Example& value) {
    Codec<Data>::write(to, value.data);
    Codec<Target>::write(to, value.target);
  }
  static Example read(MessageReader& from) {
    Data data = Codec<Data>::read(from);
    return {std::move(data), Codec<Target>::read(from)};
  }
  template <typename F>
  static void each_tensor(Example& value, const F& f) {
    Codec<Data>::each_tensor(value.data, f);
    Codec<Target>::each_tensor(value.target, f);
  }
};

template <typename Data>
struct Codec<::torch::data::Example<Data, ::torch::data::example::NoTarget>> {
  using Example = ::torch::data::Example<Data, ::torch::data::example::NoTarget>;
  static void write(MessageWriter& to, const Example& value) { Codec<Data>::write(to, value.data); }
  static Example read(MessageReader& from) { return Codec<Data>::read(from); }
  template <typename F>
  static void each_tensor(Example& value, const F& f) {
    Codec<Data>::each_tensor(value.data, f);
  }
};

}  // namespace infeed::torch
