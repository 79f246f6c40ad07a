#include "train/saving/header.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>

#include "infeed/base/error.h"
#include "infeed/train/saving/error.h"

namespace infeed {

SafetensorError::~SafetensorError() = default;
FileError::~FileError() = default;
FileError::FileError(std::filesystem::path path, const char* what, int code)
    : Error(fmt::format("'{}' {}: {}", path.string(), what, std::strerror(code))),
      path_(std::move(path)),
      code_(code) {}

}  // namespace infeed

namespace infeed::saving {
namespace {

using nlohmann::json;

// By the number of DType.
constexpr std::array<std::string_view, kNumDTypes> kNames = {"BOOL", "U8",  "I8",  "I16",  "U16", "I32", "U32",
                                                             "I64",  "U64", "F16", "BF16", "F32", "F64"};

std::optional<DType> dtype_of_name(const json& name) {
  if (!name.is_string()) return {};
  const auto found = std::find(kNames.begin(), kNames.end(), name.get_ref<const std::string&>());
  if (found == kNames.end()) return {};
  return static_cast<DType>(found - kNames.begin());
}

std::string shown(const json& value) {
  return fmt::format("{:.80}", value.dump(-1, ' ', false, json::error_handler_t::replace));
}

bool is_sizes(const json& values) {
  constexpr auto kLargest = std::uint64_t{INT64_MAX};
  return values.is_array() && std::all_of(values.begin(), values.end(), [](const json& value) {
           return value.is_number_unsigned() && value.get<std::uint64_t>() <= kLargest;
         });
}

/// Receives nlohmann's events and takes each entry when it ends, so that no tree of a hostile header is ever built.
///
///   depth 0: { }   1: "name": { }   2: "shape": [ ]   3: the sizes
class Parser {
 public:
  explicit Parser(std::string_view file_name) : file_name_(file_name) {}

  template <class... Args>
  [[noreturn]] void refuse(fmt::format_string<const Args&...> text, const Args&... args) const {
    throw SafetensorError(fmt::format("safetensors: '{}': {}", file_name_, fmt::format(text, args...)));
  }

  bool operator()(int depth, json::parse_event_t event, json& parsed) {
    using Event = json::parse_event_t;
    const bool opens = event == Event::object_start || event == Event::array_start;
    if (depth == 0 && (event == Event::array_start || event == Event::value)) refuse("the header is no JSON object");
    if ((opens && depth > 2) || (depth == 2 && event == Event::object_start)) refuse("'{}' is nested too deep", name_);
    if (event == Event::value && depth == 1) refuse("'{}' is {}, which is no object", name_, shown(parsed));
    if (depth == 1 && event == Event::array_start) refuse("'{}' is a list, not an object", name_);
    if (event == Event::array_start) sizes_ = 0;
    if (event == Event::value && depth == 3 && ++sizes_ > kMaxDims)
      refuse("'{}' has more than {} dimensions", name_, kMaxDims);
    if (event == Event::key) take_key(depth, parsed.get_ref<const std::string&>());
    if (event != Event::object_end || depth != 1) return true;
    take_object(parsed);
    return false;
  }

  Header header;

 private:
  void take_key(int depth, const std::string& key) {
    if (depth == 1) {
      if (!names_.insert(key).second) refuse("the name '{}' stands in the header twice", key);
      name_ = key;
      keys_.clear();
    } else if (!keys_.insert(key).second || (keys_.size() > 3 && name_ != kMetadata)) {
      refuse("'{}' has the key '{}' twice or beside dtype, shape and data_offsets", name_, key);
    }
  }

  void take_object(const json& object) {
    if (name_ != kMetadata) return take_entry(object);
    for (const auto& [key, value] : object.items()) {
      if (!value.is_string()) refuse("__metadata__ holds {} under '{}', which is no text", shown(value), key);
      header.metadata.emplace(key, value.get<std::string>());
    }
  }

  void take_entry(const json& object) {
    if (object.size() != 3 || !object.contains("dtype") || !object.contains("shape") ||
        !object.contains("data_offsets"))
      refuse("'{}' should have dtype, shape and data_offsets, but is {}", name_, shown(object));
    const json &shape = object["shape"], &offsets = object["data_offsets"];
    const std::optional<DType> dtype = dtype_of_name(object["dtype"]);
    if (!dtype) refuse("'{}' has the dtype {}, which is not known here", name_, shown(object["dtype"]));
    if (!is_sizes(shape) || !is_sizes(offsets) || offsets.size() != 2)
      refuse("'{}' has the shape {} and the offsets {}", name_, shown(shape), shown(offsets));
    Entry entry{name_, *dtype, Shape(shape.get<std::vector<std::int64_t>>()), offsets[0].get<std::uint64_t>()};
    entry.nbytes = itemsize(*dtype);
    bool fits = true;
    for (const std::int64_t size : entry.shape)
      fits = fits && !__builtin_mul_overflow(entry.nbytes, static_cast<std::uint64_t>(size), &entry.nbytes);
    if (!fits || entry.offset + entry.nbytes != offsets[1].get<std::uint64_t>())
      refuse("'{}' of shape {} and dtype {} does not have the size of its offsets {}", name_, shown(shape),
             to_string(*dtype), shown(offsets));
    header.entries.push_back(std::move(entry));
  }

  std::string_view file_name_;
  std::string name_;             // of the entry that is being read
  std::set<std::string> names_;  // read so far
  std::set<std::string> keys_;   // of this entry
  int sizes_ = 0;                // in this list
};

// Each byte belongs to one tensor.
void check_cover(const Parser& parser, const Header& header, std::uint64_t file_bytes) {
  std::vector<const Entry*> order;
  for (const Entry& entry : header.entries) order.push_back(&entry);
  std::sort(order.begin(), order.end(), [](const Entry* a, const Entry* b) {
    return std::pair(a->offset, a->nbytes) < std::pair(b->offset, b->nbytes);
  });
  std::uint64_t end = 0;
  for (const Entry* entry : order) {
    if (entry->offset != end)
      parser.refuse("'{}' begins at byte {}, after a gap or inside another tensor, which ends at {}", entry->name,
                    entry->offset, end);
    if (entry->nbytes > file_bytes - header.begin - end)
      parser.refuse("'{}' has {} bytes from byte {} on, beyond the file's {}", entry->name, entry->nbytes,
                    header.begin + entry->offset, file_bytes);
    end += entry->nbytes;
  }
  if (header.begin + end != file_bytes)
    parser.refuse("its tensors end at byte {} of {}", header.begin + end, file_bytes);
}

std::string quoted(const std::string& text) {
  try {
    return json(text).dump();
  } catch (const json::exception&) {
    throw ConfigError(fmt::format("{} is not UTF-8, which safetensors cannot hold",
                                  json(text).dump(-1, ' ', true, json::error_handler_t::replace)));
  }
}

}  // namespace

Header parse_header(std::span<const std::byte> file, std::string_view file_name) {
  Parser parser(file_name);
  std::uint64_t size = 0;
  if (file.size() < sizeof size) parser.refuse("{} bytes are no safetensors file", file.size());
  std::memcpy(&size, file.data(), sizeof size);
  if (size > kMaxHeaderBytes || size > file.size() - sizeof size)
    parser.refuse("a header of {} bytes does not fit into a file of {} (at most {})", size, file.size(),
                  kMaxHeaderBytes);
  const auto* text = reinterpret_cast<const char*>(file.data()) + sizeof size;
  try {
    [[maybe_unused]] const json root = json::parse(text, text + size, std::ref(parser));
  } catch (const json::parse_error& error) {  // its text may hold bytes that are no UTF-8
    parser.refuse("the header is no JSON from byte {} on", sizeof size + error.byte);
  } catch (const json::exception& error) {
    parser.refuse("the header is no JSON: {}", error.what());
  }
  parser.header.begin = sizeof size + size;
  check_cover(parser, parser.header, file.size());
  return std::move(parser.header);
}

std::string header_text(const Header& header) {
  std::vector<std::string> items;
  for (const Entry& entry : header.entries)
    items.push_back(fmt::format(R"({}:{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})", quoted(entry.name),
                                kNames[static_cast<std::size_t>(entry.dtype)], fmt::join(entry.shape, ","),
                                entry.offset, entry.offset + entry.nbytes));
  if (!header.metadata.empty()) {
    std::vector<std::string> texts;
    for (const auto& [key, value] : header.metadata) texts.push_back(quoted(key) + ":" + quoted(value));
    items.insert(items.begin(), fmt::format("\"{}\":{{{}}}", kMetadata, fmt::join(texts, ",")));
  }
  std::string text = fmt::format("{{{}}}", fmt::join(items, ","));
  std::uint64_t size = (sizeof size + text.size() + 63) / 64 * 64 - sizeof size;
  text.resize(size, ' ');
  text.insert(0, reinterpret_cast<const char*>(&size), sizeof size);
  return text;
}

}  // namespace infeed::saving
