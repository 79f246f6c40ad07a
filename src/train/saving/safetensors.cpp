#include "infeed/train/saving/safetensors.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <set>
#include <utility>

#include "base/descriptor.h"
#include "base/file_io.h"
#include "infeed/train/autograd/grad_mode.h"
#include "train/saving/atomic_file.h"
#include "train/saving/header.h"

namespace infeed {
namespace {

using saving::Entry;
using saving::Header;

/// A file in memory, private to this process.
class Mapping {
 public:
  Mapping(int fd, std::size_t bytes)
      : bytes_(bytes), start_(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE, fd, 0)) {}
  ~Mapping() {
    if (is_mapped()) munmap(start_, bytes_);
  }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  [[nodiscard]] bool is_mapped() const noexcept { return start_ != MAP_FAILED; }
  [[nodiscard]] std::span<std::byte> bytes() const noexcept { return {static_cast<std::byte*>(start_), bytes_}; }

 private:
  std::size_t bytes_;
  void* start_;
};

// Any other value of a byte would be no bool.
void check_bools(const Entry& entry, std::span<const std::byte> bytes, std::string_view file_name) {
  const auto odd = std::find_if(bytes.begin(), bytes.end(), [](std::byte value) { return value > std::byte{1}; });
  if (odd == bytes.end()) return;
  throw SafetensorError(fmt::format("safetensors: '{}': '{}' has dtype bool, but element {} is {}", file_name,
                                    entry.name, odd - bytes.begin(), static_cast<int>(*odd)));
}

Tensor view_of(const Entry& entry, std::span<std::byte> bytes, const std::shared_ptr<void>& owner,
               std::string_view file_name) {
  if (entry.dtype == DType::kBool) check_bools(entry, bytes, file_name);
  const bool aligned = reinterpret_cast<std::uintptr_t>(bytes.data()) % itemsize(entry.dtype) == 0;
  if (aligned && !bytes.empty()) return Tensor::from_array(ArrayView(bytes.data(), entry.dtype, entry.shape), owner);
  Tensor copy = Tensor::empty(entry.shape, TensorOptions(entry.dtype, DeviceId{}));
  if (!bytes.empty()) std::memcpy(copy.data_ptr(), bytes.data(), bytes.size());
  return copy;
}

// Which tensor stands where: wide elements first, so that all are aligned.
Header plan(const std::vector<NamedTensor>& tensors, const Metadata& metadata, std::vector<std::size_t>& order) {
  Header header{.metadata = metadata};
  std::set<std::string_view> names{saving::kMetadata};
  for (const auto& [name, tensor] : tensors) {
    if (!names.insert(name).second)
      throw ConfigError(fmt::format("safetensors: two tensors are named '{}', or it is the format's own name", name));
    if (tensor.is_meta())
      throw ConfigError(fmt::format("safetensors: '{}' is on meta and has no values to save", name));
    order.push_back(order.size());
    header.entries.push_back({name, tensor.dtype(), tensor.shape(), 0, tensor.nbytes()});
  }
  const auto width = [&](std::size_t at) { return itemsize(header.entries[at].dtype); };
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return width(a) > width(b); });
  std::uint64_t end = 0;
  for (const std::size_t at : order) {
    header.entries[at].offset = end;
    end += header.entries[at].nbytes;
  }
  return header;
}

std::shared_ptr<std::vector<std::byte>> read_file(const std::filesystem::path& path, int fd, std::size_t size) {
  auto bytes = std::make_shared<std::vector<std::byte>>(size);
  bytes->resize(read_some(fd, *bytes, 0));
  if (bytes->size() != size) throw FileError(path, "cannot be read", errno == 0 ? EIO : errno);
  return bytes;
}

}  // namespace

void write_safetensors(const std::function<void(std::span<const std::byte>)>& sink,
                       const std::vector<NamedTensor>& tensors, const Metadata& metadata) {
  const NoGradGuard no_grad;
  std::vector<std::size_t> order;
  const Header header = plan(tensors, metadata, order);
  const std::string text = saving::header_text(header);
  sink(std::as_bytes(std::span(text)));
  for (const std::size_t at : order) {
    const Tensor plain = tensors[at].tensor.detach().to(TensorOptions(DeviceId{})).contiguous();
    if (plain.nbytes() > 0) sink({plain.data_ptr(), plain.nbytes()});
  }
}

void save(const std::filesystem::path& path, const std::vector<NamedTensor>& tensors, const Metadata& metadata) {
  saving::AtomicFile file(path);
  write_safetensors([&](std::span<const std::byte> bytes) { file.write(bytes); }, tensors, metadata);
  file.commit();
}

TensorFile read_safetensors(std::span<std::byte> bytes, const std::shared_ptr<void>& owner, std::string_view name) {
  Header header = saving::parse_header(bytes, name);
  TensorFile file{.metadata = std::move(header.metadata)};
  for (Entry& entry : header.entries) {
    Tensor tensor = view_of(entry, bytes.subspan(header.begin + entry.offset, entry.nbytes), owner, name);
    file.tensors.push_back({std::move(entry.name), std::move(tensor)});
  }
  return file;
}

TensorFile load(const std::filesystem::path& path, const LoadOptions& options) {
  const Descriptor opened(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat status {};
  if (!opened.valid() || fstat(opened.fd(), &status) != 0) throw FileError(path, "cannot be read", errno);
  if (!S_ISREG(status.st_mode)) throw FileError(path, "cannot be read", S_ISDIR(status.st_mode) ? EISDIR : ESPIPE);
  const auto size = static_cast<std::size_t>(status.st_size);
  TensorFile file;
  if (options.mmap && size > 0) {
    const auto mapping = std::make_shared<Mapping>(opened.fd(), size);
    if (!mapping->is_mapped()) throw FileError(path, "cannot be mapped", errno);
    file = read_safetensors(mapping->bytes(), mapping, path.string());
  } else {
    const auto bytes = read_file(path, opened.fd(), size);
    file = read_safetensors(*bytes, bytes, path.string());
  }
  if (options.map_location) {
    for (NamedTensor& entry : file.tensors) entry.tensor = entry.tensor.to(TensorOptions(*options.map_location));
  }
  return file;
}

}  // namespace infeed
