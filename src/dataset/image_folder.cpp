#include "infeed/dataset/image_folder.h"

#include <fmt/format.h>

#include <mutex>
#include <utility>

#include "base/hash.h"
#include "dataset/file_list.h"
#include "dataset/image_reader.h"
#include "dataset/index_cache.h"
#include "dataset/plane_cache.h"
#include "dataset/sealed_file.h"
#include "infeed/base/error.h"
#include "infeed/base/log.h"

namespace infeed {

/// What all processes share.
struct ImageFolder::Files {
  explicit Files(FileList files) : list(std::move(files)) {}
  FileList list;
  std::mutex mutex;                    ///< of `shared`
  std::unique_ptr<SealedFile> shared;  ///< the list for spawned workers, made when the first spec() asks
  std::unique_ptr<PlaneCache> cache;   ///< null: none
  std::unique_ptr<IndexCache> index;   ///< null: none
};

namespace {

Schema schema_of(const ImageFolderOptions& options) {
  if (options.label_dtype != DType::kInt64 && options.label_dtype != DType::kInt32)
    throw ConfigError(fmt::format("label_dtype is {}; labels are int64 or int32.", to_string(options.label_dtype)));
  return Schema{{"image", options.transforms.dtype(), options.transforms.output_shape()},
                {"label", options.label_dtype, {}}};
}

std::string without_slash(std::string root) {
  while (root.size() > 1 && root.back() == '/') root.pop_back();
  return root;
}

/// Suffixes in lower case. Throws ConfigError where they would match all or nothing.
ImageFolderOptions checked(ImageFolderOptions options) {
  if (options.extensions.empty())
    throw ConfigError("extensions of an ImageFolder is empty: no file would be a sample.");
  for (std::string& extension : options.extensions) {
    if (extension.empty())
      throw ConfigError("extensions of an ImageFolder holds an empty text: each file would match.");
    for (char& c : extension) {
      if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    }
  }
  const bool caches = options.cache == ImageCache::kPlanes;
  if (caches && options.decode.path != DecodePath::kPlanes)
    throw ConfigError("a cache of planes needs the decode path planes, whose pixels differ a little from exact ones.");
  if (caches != (options.cache_bytes > 0))
    throw ConfigError(fmt::format("cache_bytes is {}, and the cache is {}. Give both or none.", options.cache_bytes,
                                  caches ? "planes" : "none"));
  return options;
}

// A path may be any bytes but 0, a state's text is UTF-8: other paths travel as numbers.
void set_path(State& state, const std::string& key, const std::string& path) {
  try {
    state.set(key, path);
  } catch (const StateError&) {
    std::vector<std::int64_t> bytes;
    for (const char c : path) bytes.push_back(static_cast<unsigned char>(c));
    state.set(key + "_bytes", bytes);
  }
}

std::string get_path(const State& state, const std::string& key) {
  if (!state.contains(key + "_bytes")) return state.get_string(key);
  std::string path;
  for (const std::int64_t byte : state.get_ints(key + "_bytes")) path += static_cast<char>(byte);
  return path;
}

State decode_state(const DecodeOptions& options) {
  State state;
  state.set("exact", options.exact);
  state.set("orient", options.orient);
  state.set("allow_truncated", options.allow_truncated);
  state.set("max_pixels", options.max_pixels);
  state.set("path", to_string(options.path));
  return state;
}

DecodeOptions decode_from(const State& state) {
  DecodeOptions options;
  if (state.contains("exact")) options.exact = state.get_bool("exact");
  if (state.contains("orient")) options.orient = state.get_bool("orient");
  if (state.contains("allow_truncated")) options.allow_truncated = state.get_bool("allow_truncated");
  if (state.contains("max_pixels")) options.max_pixels = state.get_int("max_pixels");
  if (state.contains("path")) options.path = decode_path_from_string(state.get_string("path"));
  return options;
}

ImageFolderOptions options_from(const State& params) {
  ImageFolderOptions options;
  if (params.contains("transforms")) options.transforms = Compose::from_state(params.get_state("transforms"));
  if (params.contains("decode")) options.decode = decode_from(params.get_state("decode"));
  if (params.contains("label_dtype")) options.label_dtype = dtype_from_string(params.get_string("label_dtype"));
  if (params.contains("extensions")) {
    options.extensions.clear();
    for (const State& entry : params.get_states("extensions")) options.extensions.push_back(entry.get_string("suffix"));
  }
  if (params.contains("index_cache") || params.contains("index_cache_bytes"))
    options.index_cache = get_path(params, "index_cache");
  if (params.contains("cache_bytes")) {
    options.cache = ImageCache::kPlanes;
    options.cache_bytes = params.get_uint("cache_bytes");
  }
  return options;
}

FileList files_from(const State& params, const std::string& root, const ImageFolderOptions& options) {
  if (params.contains("fds")) {
    const auto fds = params.get_ints("fds");
    const std::size_t needed =
        std::size_t{1} + (options.cache == ImageCache::kPlanes ? 1 : 0) + (options.index_cache.empty() ? 0 : 3);
    if (fds.size() != needed)
      throw ConfigError(
          fmt::format("image_folder needs the {} descriptors of its spec(), {} are given.", needed, fds.size()));
    auto mapping = std::make_shared<const FileMapping>(fds[0]);
    const auto block = mapping->bytes();
    return FileList::view(block, std::move(mapping));
  }
  FileList list = FileList::scan(root, options.extensions);
  if (params.contains("digest") && params.get_uint("digest") != list.digest())
    throw ConfigError(
        fmt::format("the files of '{}' ({} now) are not those that the loader was made for. Leave them "
                    "alone while it runs, or make it again.",
                    root, list.size()));
  return list;
}

std::unique_ptr<PlaneCache> cache_of(std::int64_t num_samples, const ImageFolderOptions& options) {
  if (options.cache == ImageCache::kNone) return nullptr;
  return PlaneCache::create({.num_samples = num_samples, .bytes = options.cache_bytes});
}

std::unique_ptr<IndexCache> index_of(const std::string& root, const FileList& list, const ImageFolderOptions& options) {
  if (options.index_cache.empty()) return nullptr;
  const std::string path = options.index_cache == "auto" ? automatic_index_path(root) : options.index_cache;
  if (path.empty()) {
    log(LogLevel::kWarning, "index_cache: 'auto' needs XDG_CACHE_HOME or HOME; name a file instead. Decoding goes on.");
    return nullptr;
  }
  std::vector<std::uint64_t> names(static_cast<std::size_t>(list.size()));
  for (std::int64_t i = 0; i < list.size(); ++i) names[static_cast<std::size_t>(i)] = hash64(list.path(i));
  return IndexCache::open(path, names);
}

// The descriptors of a spec: | list | planes, where they are kept | table, index and part, where an index is kept |
std::unique_ptr<IndexCache> index_from(const State& params, const std::string& root, const FileList& list,
                                       const ImageFolderOptions& options) {
  if (options.index_cache.empty() || !params.contains("fds")) return index_of(root, list, options);
  const auto fds = params.get_ints("fds");
  return IndexCache::adopt({fds.end() - 3, fds.end()});
}

void write_label(const Row& row, DType dtype, std::int64_t label) {
  if (dtype == DType::kInt64)
    row.set(1, label);
  else
    row.set(1, static_cast<std::int32_t>(label));
}

}  // namespace

ImageCache image_cache_from_string(std::string_view name) {
  if (name == "none") return ImageCache::kNone;
  if (name == "planes") return ImageCache::kPlanes;
  throw ConfigError(fmt::format("cache is '{}'; it can be 'none' or 'planes'.", name));
}

ImageFolder::ImageFolder(const std::string& root, ImageFolderOptions options)
    : root_(without_slash(root)), options_(checked(std::move(options))), schema_(schema_of(options_)) {
  files_ = std::make_unique<Files>(FileList::scan(root_, options_.extensions));
  files_->cache = cache_of(size(), options_);
  files_->index = index_of(root_, files_->list, options_);
}

ImageFolder::ImageFolder(std::string root, ImageFolderOptions options, std::unique_ptr<Files> files)
    : root_(std::move(root)), options_(std::move(options)), schema_(schema_of(options_)), files_(std::move(files)) {}

ImageFolder::~ImageFolder() = default;

std::int64_t ImageFolder::size() const { return files_->list.size(); }

void ImageFolder::read(Row& row) const {
  thread_local ImageReader reader;
  const std::int64_t index = row.index();
  const std::string file = path(index);
  try {
    reader.read(file, options_.transforms, options_.decode, row,
                {files_->cache.get(), files_->index.get(), files_->list.path(index)});
  } catch (const DecodeError& error) {
    throw DataError(fmt::format("sample {} ('{}') cannot be decoded: {}", index, file, error.what()));
  } catch (const DataError& error) {
    throw DataError(fmt::format("sample {} ('{}') {}.", index, file, error.what()));
  }
  write_label(row, options_.label_dtype, files_->list.label(index));
}

std::optional<DatasetSpec> ImageFolder::spec() const {
  const std::lock_guard lock(files_->mutex);
  if (files_->shared == nullptr) {
    auto shared = std::make_unique<SealedFile>("infeed file list", files_->list.block().size());
    shared->write(0, files_->list.block());
    shared->seal();
    files_->shared = std::move(shared);
  }
  std::vector<State> extensions(options_.extensions.size());
  for (std::size_t i = 0; i < extensions.size(); ++i) extensions[i].set("suffix", options_.extensions[i]);
  State params;
  set_path(params, "root", root_);
  params.set("transforms", options_.transforms.to_state());
  params.set("decode", decode_state(options_.decode));
  params.set("extensions", extensions);
  params.set("label_dtype", to_string(options_.label_dtype));
  params.set("digest", files_->list.digest());
  std::vector<std::int64_t> fds{files_->shared->fd()};
  if (files_->cache != nullptr) {
    params.set("cache_bytes", options_.cache_bytes);
    fds.push_back(files_->cache->fd());
  }
  if (files_->index != nullptr) {
    set_path(params, "index_cache", options_.index_cache);
    const auto more = files_->index->fds();
    fds.insert(fds.end(), more.begin(), more.end());
  }
  params.set("fds", fds);
  return DatasetSpec{"image_folder", std::move(params), {}};
}

std::string ImageFolder::describe(std::int64_t index) const {
  return index >= 0 && index < size() ? path(index) : std::string();
}

std::vector<std::string> ImageFolder::classes() const {
  std::vector<std::string> names;
  for (std::int64_t c = 0; c < files_->list.num_classes(); ++c) names.emplace_back(files_->list.class_name(c));
  return names;
}

std::string ImageFolder::path(std::int64_t index) const {
  if (index < 0 || index >= size())
    throw IndexError(fmt::format("sample {} was asked of an ImageFolder of {} ('{}').", index, size(), root_));
  std::string path;
  const std::string_view below = files_->list.path(index);
  path.reserve(root_.size() + 1 + below.size());
  return path.append(root_).append(1, '/').append(below);
}

std::int64_t ImageFolder::label(std::int64_t index) const {
  static_cast<void>(path(index));  // checks it
  return files_->list.label(index);
}

std::vector<std::string> ImageFolder::paths() const {
  std::vector<std::string> paths;
  paths.reserve(static_cast<std::size_t>(size()));
  for (std::int64_t i = 0; i < size(); ++i) paths.push_back(path(i));
  return paths;
}

ImageCacheStats ImageFolder::cache_stats() const {
  if (files_->cache == nullptr) return {};
  const PlaneCacheStats stats = files_->cache->stats();
  return {.pictures = stats.pictures, .bytes = stats.bytes_used, .hits = stats.hits};
}

std::unique_ptr<ImageFolder> ImageFolder::from_params(const State& params) {
  const std::string root = without_slash(get_path(params, "root"));
  ImageFolderOptions options = checked(options_from(params));
  auto files = std::make_unique<Files>(files_from(params, root, options));
  const PlaneCacheOptions cache{.num_samples = files->list.size(), .bytes = options.cache_bytes};
  const bool inherits = options.cache == ImageCache::kPlanes && params.contains("fds");
  files->cache = inherits ? PlaneCache::attach(params.get_ints("fds")[1], cache) : cache_of(cache.num_samples, options);
  files->index = index_from(params, root, files->list, options);
  return std::unique_ptr<ImageFolder>(new ImageFolder(root, std::move(options), std::move(files)));
}

}  // namespace infeed
