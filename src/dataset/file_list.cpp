#include "dataset/file_list.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/hash.h"
#include "infeed/base/error.h"

namespace infeed {
namespace {

constexpr std::uint32_t kMagic = 0x314c4649;  // "IFL1"

struct Header {
  std::uint32_t magic = kMagic;
  std::uint32_t zero32 = 0;
  std::uint64_t num_classes = 0;
  std::uint64_t num_files = 0;
  std::uint64_t names_bytes = 0;
  std::uint64_t zero[4] = {};
};
static_assert(sizeof(Header) == 64);

/// What a block is made of, while it is collected.
struct Parts {
  std::vector<std::uint64_t> class_end;
  std::vector<std::uint64_t> name_end;
  std::string names;

  void add_name(const std::string& name) {
    names += name;
    name_end.push_back(names.size());
  }
};

template <typename T>
std::byte* append(std::byte* out, const T* from, std::size_t count) {
  if (count > 0) std::memcpy(out, from, count * sizeof(T));
  return out + count * sizeof(T);
}

std::pair<std::span<const std::byte>, std::shared_ptr<const void>> join(const Parts& parts) {
  Header header;
  header.num_classes = parts.class_end.size();
  header.num_files = parts.name_end.size() - parts.class_end.size();
  header.names_bytes = parts.names.size();
  const std::size_t size = sizeof(header) + 8 * (parts.class_end.size() + parts.name_end.size()) + parts.names.size();
  auto words = std::make_shared_for_overwrite<std::uint64_t[]>((size + 7) / 8);
  auto* start = reinterpret_cast<std::byte*>(words.get());
  std::byte* end = append(start, &header, 1);
  end = append(end, parts.class_end.data(), parts.class_end.size());
  end = append(end, parts.name_end.data(), parts.name_end.size());
  append(end, parts.names.data(), parts.names.size());
  return {{start, size}, words};
}

bool grows_to(std::span<const std::uint64_t> ends, std::uint64_t last) {
  return std::is_sorted(ends.begin(), ends.end()) && (ends.empty() ? 0 : ends.back()) == last;
}

}  // namespace

FileList FileList::scan(const std::string& root, std::span<const std::string> extensions) {
  Parts parts;
  const std::vector<std::string> classes = list_classes(root);
  for (const std::string& name : classes) parts.add_name(name);
  std::vector<std::string> empty;
  for (const std::string& name : classes) {
    const auto files = walk_class(root, name, extensions);
    if (files.empty()) empty.push_back(name);
    for (const std::string& file : files) parts.add_name(file);
    parts.class_end.push_back(parts.name_end.size() - classes.size());
  }
  if (!empty.empty())
    throw ConfigError(fmt::format("classes without a file in '{}': {}. Their names would have to end in {}.", root,
                                  fmt::join(empty, ", "), fmt::join(extensions, ", ")));
  auto [block, owner] = join(parts);
  return FileList(block, std::move(owner));
}

FileList FileList::view(std::span<const std::byte> block, std::shared_ptr<const void> owner) {
  Header header;
  if (block.size() < sizeof(header)) throw ConfigError("a list of files has no header.");
  std::memcpy(&header, block.data(), sizeof(header));
  const std::uint64_t words = (block.size() - sizeof(header)) / 8;
  const bool plausible =
      header.magic == kMagic && header.num_classes <= words / 2 && header.num_files <= words - 2 * header.num_classes &&
      header.names_bytes == block.size() - sizeof(header) - 8 * (2 * header.num_classes + header.num_files);
  if (!plausible) throw ConfigError("a list of files was handed over that is none: another program's, or damaged.");
  FileList list(block, std::move(owner));
  if (!grows_to(list.class_end_, header.num_files) || !grows_to(list.name_end_, header.names_bytes))
    throw ConfigError("a list of files was handed over with damaged offsets.");
  return list;
}

FileList::FileList(std::span<const std::byte> block, std::shared_ptr<const void> owner)
    : owner_(std::move(owner)), block_(block) {
  const auto* header = reinterpret_cast<const Header*>(block.data());
  const auto* words = reinterpret_cast<const std::uint64_t*>(header + 1);
  num_classes_ = static_cast<std::int64_t>(header->num_classes);
  num_files_ = static_cast<std::int64_t>(header->num_files);
  class_end_ = {words, header->num_classes};
  name_end_ = {words + header->num_classes, header->num_classes + header->num_files};
  names_ = reinterpret_cast<const char*>(words + class_end_.size() + name_end_.size());
}

std::string_view FileList::name(std::int64_t i) const noexcept {
  const auto n = static_cast<std::size_t>(i);
  const std::uint64_t begin = n == 0 ? 0 : name_end_[n - 1];
  return {names_ + begin, name_end_[n] - begin};
}

std::int64_t FileList::label(std::int64_t index) const noexcept {
  return std::upper_bound(class_end_.begin(), class_end_.end(), static_cast<std::uint64_t>(index)) - class_end_.begin();
}

std::uint64_t FileList::digest() const noexcept { return hash64(block_); }

}  // namespace infeed
