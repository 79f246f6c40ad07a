#include "pictures.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <memory>
#include <stdexcept>

#include "machine.h"
#include "transform/fused.h"

namespace bench {
namespace {

namespace fs = std::filesystem;

struct Size {
  int width, height;
};

Size size_of(const Bytes& file) {
  infeed::JpegSource source;
  const infeed::StoredInfo info = source.open(file, {});
  return {info.width, info.height};
}

std::vector<std::uint8_t> rgb_of(const Bytes& file) {
  const std::vector<std::uint8_t> rgbx = infeed::testing::decode_plainly(file);
  std::vector<std::uint8_t> rgb;
  for (std::size_t i = 0; i < rgbx.size(); i += 4) rgb.insert(rgb.end(), {rgbx[i], rgbx[i + 1], rgbx[i + 2]});
  return rgb;
}

std::vector<std::uint8_t> blurred(const std::vector<std::uint8_t>& rgb, Size size) {
  std::vector<std::uint8_t> result(rgb.size());
  const auto at = [&](int x, int y, int c) {
    x = std::clamp(x, 0, size.width - 1), y = std::clamp(y, 0, size.height - 1);
    const int place = (y * size.width + x) * 3 + c;
    return static_cast<int>(rgb[static_cast<std::size_t>(place)]);
  };
  const auto row = [&](int x, int y, int c) { return at(x - 1, y, c) + 2 * at(x, y, c) + at(x + 1, y, c); };
  std::size_t next = 0;
  for (int y = 0; y < size.height; ++y) {
    for (int x = 0; x < size.width; ++x) {
      for (int c = 0; c < 3; ++c)
        result[next++] = static_cast<std::uint8_t>((row(x, y - 1, c) + 2 * row(x, y, c) + row(x, y + 1, c) + 8) / 16);
    }
  }
  return result;
}

}  // namespace

Files load(const fs::path& folder, std::size_t count) {
  std::vector<fs::path> paths;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.path().extension() == ".jpg") paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  if (paths.empty()) throw std::runtime_error(fmt::format("{} holds no .jpg", folder.string()));
  const std::size_t step = std::max<std::size_t>(1, paths.size() / count);  // of all classes
  Files files;
  for (std::size_t i = 0; i < paths.size() && files.size() < count; i += step) {
    std::ifstream file(paths[i], std::ios::binary);
    const std::string text(std::istreambuf_iterator<char>(file), {});
    files.push_back(infeed::testing::bytes_of(text));
  }
  return files;
}

Files encoded_anew(const Files& files, int quality, bool blur) {
  Files result;
  for (const Bytes& file : files) {
    const Size size = size_of(file);
    std::vector<std::uint8_t> rgb = rgb_of(file);
    if (blur) rgb = blurred(rgb, size);
    result.push_back(infeed::testing::make_jpeg(
        {.width = size.width, .height = size.height, .sampling = {infeed::testing::Sampling{2, 2}}, .quality = quality},
        rgb));
  }
  return result;
}

double mean_kb(const Files& files) {
  double bytes = 0;
  for (const Bytes& file : files) bytes += static_cast<double>(file.size());
  return bytes / static_cast<double>(files.size()) / 1000;
}

Turn SampleCost::contestant(bool by_libjpeg) {
  struct State {
    infeed::JpegSource source;
    infeed::PixelBuffer buffer;
    infeed::FusedKernel kernel;
    std::vector<std::byte> row;
    explicit State(bool libjpegs) : source(libjpegs) {}
  };
  const auto state = std::make_shared<State>(by_libjpeg);
  const infeed::Shape shape = chain_.output_shape();
  state->row.resize(static_cast<std::size_t>(shape.numel()) * infeed::itemsize(chain_.dtype()));
  return [this, state, shape](std::uint64_t round) {
    std::uint64_t sum = 0;
    const double before = thread_cpu_s();
    for (std::size_t i = 0; i < files_.size(); ++i) {
      const infeed::StoredInfo info = state->source.open(files_[i], {});
      const infeed::FusedPlan plan = plan_sample(chain_, info.width, info.height, infeed::Philox(7, round, i));
      const infeed::PixelWindow window = state->source.decode(plan.window, 224, 224, state->buffer);
      state->kernel.run(chain_, plan, window, {state->row.data(), chain_.dtype(), shape});
      for (std::size_t at = 0; at < state->row.size(); at += 509)
        sum = sum * 31 + std::to_integer<std::uint64_t>(state->row[at]);
    }
    const double us = (thread_cpu_s() - before) / static_cast<double>(files_.size()) * 1e6;
    if (round == sums_.size()) sums_.push_back(sum);
    if (sums_.at(round) != sum) throw std::runtime_error("our pixels are not libjpeg's");
    return us;
  };
}

infeed::Compose w1a_chain() {
  return infeed::Compose{infeed::random_resized_crop(224), infeed::random_horizontal_flip(), infeed::normalize()};
}

infeed::Compose w1b_chain() {
  return infeed::Compose{infeed::resize(256), infeed::center_crop(224), infeed::to_layout(infeed::ImageLayout::kHWC)};
}

}  // namespace bench
