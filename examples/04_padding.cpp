// Samples of different lengths: padded to the batch's longest, or joined end to end.
#include <infeed/infeed.h>

#include <cstdio>

namespace {

infeed::LoaderOptions options(std::shared_ptr<const infeed::Collate> collate) {
  return {.batch_size = 8, .num_workers = 2, .collate = std::move(collate)};
}

void show_padded(const infeed::Dataset& sentences) {
  infeed::Loader loader(sentences, options(std::make_shared<infeed::PadCollate>(
                                       infeed::PadOptions{.fill = {{"tokens", -100}}, .pad_to_multiple = 4})));
  while (const auto batch = loader.next()) {
    const auto* lengths = batch->at("tokens.lengths").as<std::int64_t>();
    std::printf("padded: tokens %s, lengths", batch->at("tokens").shape.str().c_str());
    for (std::int64_t i = 0; i < batch->size(); ++i) std::printf(" %lld", static_cast<long long>(lengths[i]));
    std::printf("\n");
  }
}

void show_ragged(const infeed::Dataset& sentences) {
  infeed::Loader loader(sentences, options(std::make_shared<infeed::RaggedCollate>()));
  while (const auto batch = loader.next()) {
    const auto* offsets = batch->at("tokens.offsets").as<std::int64_t>();  // row i: [offsets[i], offsets[i + 1])
    std::printf("ragged: tokens %s, offsets", batch->at("tokens").shape.str().c_str());
    for (std::int64_t i = 0; i <= batch->size(); ++i) std::printf(" %lld", static_cast<long long>(offsets[i]));
    std::printf("\n");
  }
}

}  // namespace

int main() {
  // -1 marks the size that differs from sample to sample.
  const infeed::SyntheticDataset sentences(40, {{"tokens", infeed::DType::kInt32, {-1}}},
                                           {.min_length = 3, .max_length = 12});
  show_padded(sentences);
  show_ragged(sentences);
}
