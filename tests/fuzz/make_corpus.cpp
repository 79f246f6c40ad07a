// Writes the seeds of the fuzz targets: small files of every kind, batches, states.

#include <array>
#include <cstddef>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "batch/writer.h"
#include "dataset/index_file.h"
#include "decode/decoder.h"
#include "decode/jpeg_maker.h"
#include "decode/png_maker.h"
#include "infeed/dataset/synthetic.h"
#include "infeed/loader/loader.h"
#include "infeed/sampler/distributed.h"
#include "infeed/sampler/feistel.h"
#include "infeed/sampler/random.h"
#include "infeed/sampler/sequential.h"
#include "infeed/transform/compose.h"

namespace {

using namespace infeed;
using namespace infeed::testing;

/// One folder of seeds.
class Corpus {
 public:
  explicit Corpus(std::filesystem::path folder) : folder_(std::move(folder)) {
    std::filesystem::create_directories(folder_);
  }
  void add(const std::string& name, std::span<const std::byte> bytes) const {
    std::ofstream file(folder_ / name, std::ios::binary);
    file.exceptions(std::ios::badbit | std::ios::failbit);
    file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  }
  void add(const std::string& name, std::string_view text) const { add(name, std::as_bytes(std::span(text))); }

 private:
  std::filesystem::path folder_;
};

// decode_fuzz.cpp takes its choices from the first 8 bytes: flags, window, output size.
Bytes with_choices(const Bytes& file, unsigned flags) {
  const std::array<unsigned, 8> choices{flags, 20, 40, 180, 200, 15, 11, 0};
  Bytes seed;
  for (const unsigned choice : choices) seed.push_back(static_cast<std::byte>(choice));
  seed.insert(seed.end(), file.begin(), file.end());
  return seed;
}

void make_jpegs(const Corpus& corpus) {
  const auto small = [](JpegRecipe recipe) {
    recipe.width = 24, recipe.height = 17, recipe.quality = 60;
    return make_jpeg(recipe);
  };
  const std::array<Sampling, 4> wide{{{2, 1}, {1, 1}, {1, 1}, {1, 1}}}, both{{{2, 2}, {1, 1}, {1, 1}, {2, 2}}};
  const Bytes plain = small({.sampling = both});
  corpus.add("420", with_choices(plain, 0));
  corpus.add("420_exact", with_choices(plain, 1));
  corpus.add("420_cut", with_choices(first_bytes(plain, plain.size() - 40), 4));
  corpus.add("oriented", with_choices(with_exif(plain, {.orientation = 6}), 2));
  corpus.add("oriented_big_endian", with_choices(with_exif(plain, {.orientation = 8, .big_endian = true}), 2));
  corpus.add("422_restarts", with_choices(small({.sampling = wide, .restart_blocks = 2}), 0));
  corpus.add("420_window", with_choices(plain, 2));
  corpus.add("420_by_index", with_choices(plain, 6));
  corpus.add("own_tables", with_choices(small({.sampling = both, .own_tables = true}), 0));
  corpus.add("444_window", with_choices(small({.own_tables = true}), 2));
  corpus.add("gray", with_choices(small({.color = JpegColor::kGray}), 0));
  corpus.add("rgb", with_choices(small({.color = JpegColor::kRGB}), 0));
  corpus.add("cmyk", with_choices(small({.color = JpegColor::kCMYK}), 0));
  corpus.add("ycck", with_choices(small({.color = JpegColor::kYCCK, .sampling = both}), 1));
  corpus.add("progressive", with_choices(small({.progressive = true}), 0));
  corpus.add("progressive_cut", with_choices(small({.progressive = true, .progressive_scans = 3}), 4));
  corpus.add("arithmetic", with_choices(small({.arithmetic = true}), 0));
  corpus.add("scans_apart", with_choices(small({.scans_apart = true}), 0));
}

void make_pngs(const Corpus& corpus) {
  const auto small = [](PngRecipe recipe) {
    recipe.width = 13, recipe.height = 9;
    return make_png(recipe).bytes;
  };
  corpus.add("rgb", with_choices(small({}), 0));
  corpus.add("rgb_16", with_choices(small({.bit_depth = 16}), 0));
  corpus.add("rgb_transparent", with_choices(small({.transparent = true}), 0));
  corpus.add("rgba_interlaced", with_choices(small({.color = PngColor::kRGBA, .interlaced = true}), 1));
  corpus.add("gray_1", with_choices(small({.color = PngColor::kGray, .bit_depth = 1}), 0));
  corpus.add("gray_16_interlaced",
             with_choices(small({.color = PngColor::kGray, .bit_depth = 16, .interlaced = true}), 0));
  corpus.add("gray_alpha", with_choices(small({.color = PngColor::kGrayAlpha}), 0));
  corpus.add("palette_4", with_choices(small({.color = PngColor::kPalette, .bit_depth = 4}), 0));
  corpus.add("palette_transparent", with_choices(small({.color = PngColor::kPalette, .transparent = true}), 0));
  corpus.add("oriented", with_choices(small({.orientation = 6}), 2));
  const Bytes whole = small({});
  corpus.add("rgb_cut", with_choices(first_bytes(whole, whole.size() - 60), 4));
}

/// Bytes of an extent up to the last array's record; the arrays themselves are zero in batch_reader_fuzz.cpp.
void make_batch(const Corpus& corpus, const std::string& name, const std::vector<Field>& fields) {
  const std::size_t extent_bytes = kArraysBegin + 4096;
  struct Free {
    void operator()(std::byte* bytes) const { ::operator delete[](bytes, std::align_val_t{kArrayAlign}); }
  };
  const std::unique_ptr<std::byte, Free> memory(new (std::align_val_t{kArrayAlign}) std::byte[extent_bytes]{});
  BatchWriter writer({memory.get(), extent_bytes});
  for (const Field& field : fields) writer.add(field.name, field.dtype, field.shape);
  static_cast<void>(writer.finish());
  corpus.add(name, std::span(memory.get(), sizeof(BatchHeader) + fields.size() * sizeof(ArrayRecord)));
}

void make_batches(const Corpus& corpus) {
  make_batch(corpus, "none", {});
  make_batch(corpus, "image_label", {{"image", DType::kUInt8, {4, 3, 8, 8}}, {"label", DType::kInt64, {4}}});
  make_batch(corpus, "ragged", {{"tokens.values", DType::kInt32, {37}}, {"tokens.offsets", DType::kInt64, {5}}});
  make_batch(corpus, "empty_and_scalar", {{"empty", DType::kFloat32, {0, 7}}, {"scalar", DType::kFloat64, {}}});
  make_batch(corpus, "deep", {{"deep", DType::kFloat16, {1, 2, 1, 2, 1, 2, 1, 2}}, {"mask", DType::kBool, {16, 16}}});
}

template <typename AnySampler>
void make_sampler_state(const Corpus& corpus, const std::string& name) {
  AnySampler sampler(24);  // as in state_fuzz.cpp
  std::array<std::int64_t, 5> taken{};
  static_cast<void>(sampler.next(taken));
  State state;
  sampler.save(state);
  corpus.add(name, state.to_json());
}

void make_states(const Corpus& corpus) {
  make_sampler_state<SequentialSampler>(corpus, "sequential");
  make_sampler_state<RandomSampler>(corpus, "random");
  make_sampler_state<DistributedSampler>(corpus, "distributed");
  make_sampler_state<FeistelSampler>(corpus, "feistel");
  const SyntheticDataset dataset(24, {{"x", DType::kUInt8, {4}}});
  corpus.add("synthetic", dataset.spec()->params.to_json());
  corpus.add("schema",
             Schema({{"image", DType::kUInt8, {3, -1, -1}}, {"label", DType::kInt64, {}}}).to_state().to_json());
  corpus.add("compose",
             Compose({random_resized_crop(224), random_horizontal_flip(), normalize()}).to_state().to_json());
  Loader loader(dataset, {.batch_size = 4, .shuffle = true});
  corpus.add("loader_fresh", loader.state_dict().to_json());
  static_cast<void>(loader.next());
  corpus.add("loader_in_epoch", loader.state_dict().to_json());
  corpus.add("all_kinds",
             R"({"a":-1,"b":18446744073709551615,"c":1.5e-3,"d":[1,2],"e":{"f":[{}]},"g":"\u00e9","h":null,"i":true})");
}

// Length, header, and as many bytes of tensors.
void make_tensor_file(const Corpus& corpus, const std::string& name, const std::string& header, std::size_t bytes) {
  const std::uint64_t size = header.size();
  std::string file(reinterpret_cast<const char*>(&size), sizeof size);
  corpus.add(name, file.append(header).append(bytes, '\0'));
}

void make_tensor_files(const Corpus& corpus) {
  make_tensor_file(corpus, "one", R"({"x":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", 8);
  make_tensor_file(corpus, "two_metadata",
                   R"({"__metadata__":{"a":"b"},"x":{"dtype":"F64","shape":[1,1],"data_offsets":[0,8]},)"
                   R"("y":{"dtype":"BOOL","shape":[3],"data_offsets":[8,11]}}   )",
                   11);
  make_tensor_file(corpus, "zero_size",
                   R"({"e":{"dtype":"I64","shape":[0,3],"data_offsets":[0,0]},)"
                   R"("s":{"dtype":"BF16","shape":[],"data_offsets":[0,2]}})",
                   2);
  make_tensor_file(corpus, "empty", "{}", 0);
  make_tensor_file(corpus, "gap", R"({"x":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}})", 3);
  make_tensor_file(corpus, "deep", R"({"x":{"shape":[[[[1]]]]}})", 0);
}

// index_fuzz.cpp takes the first byte as its choice, and makes magic, size and checksum of a record itself.
void make_indexes(const Corpus& corpus) {
  std::vector<IndexRecord> records(2);
  const Bytes file = make_jpeg({.width = 200, .height = 100});
  Decoder decoder;
  decoder.open(file, {});
  decoder.use_index(records[0].rows);
  static_cast<void>(decoder.decode({199, 99, 1, 1}, 1, 1));
  records[1].rows.none = true;
  std::string part(reinterpret_cast<const char*>(part_header().data()), kIndexHeaderBytes);
  const std::string path = std::filesystem::temp_directory_path() / "infeed-seed.index";
  IndexWriter writer(path);
  for (IndexRecord& record : records) {
    record.name = 7 + record.rows.entries.size();
    record.key = {file.size(), 1, 2};
    const auto bytes = encode(record);
    const std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    std::string seed(1, '\0');
    corpus.add(record.rows.none ? "none" : "record", seed.append(text, 0, text.size() - 8));
    part += text;
    writer.add(bytes, record.name, record.is_complete());
  }
  writer.finish();
  std::ifstream whole(path, std::ios::binary);
  corpus.add("part", part.insert(0, 1, '\1'));
  std::string bytes(std::istreambuf_iterator<char>(whole), {});
  corpus.add("index", bytes.insert(0, 1, '\1'));
  std::filesystem::remove(path);
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 2) {
    std::fputs("usage: fuzz_corpus FOLDER\n", stderr);
    return 2;
  }
  const std::filesystem::path folder = argv[1];
  make_jpegs(Corpus(folder / "jpeg"));
  make_pngs(Corpus(folder / "png"));
  make_batches(Corpus(folder / "batch_reader"));
  make_states(Corpus(folder / "state"));
  make_indexes(Corpus(folder / "index"));
  make_tensor_files(Corpus(folder / "safetensors"));
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
