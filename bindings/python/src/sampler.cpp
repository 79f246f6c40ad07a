#include "sampler.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "infeed/base/error.h"
#include "infeed/sampler/batch.h"
#include "infeed/sampler/distributed.h"
#include "infeed/sampler/feistel.h"
#include "infeed/sampler/random.h"
#include "infeed/sampler/sequential.h"
#include "infeed/sampler/subset.h"
#include "infeed/sampler/weighted.h"

namespace infeed::python {
namespace {

namespace nb = nanobind;

template <typename Made, typename... Arguments>
SamplerHandle make(Arguments&&... arguments) {
  return {std::make_unique<Made>(std::forward<Arguments>(arguments)...)};
}

template <typename Pointer>
Pointer taken(Pointer& sampler) {
  if (!sampler) throw ConfigError("this sampler is in another loader's hands already; make one for each loader.");
  return std::move(sampler);
}

nb::list draw(SamplerHandle& self, std::size_t count) {
  std::vector<std::int64_t> indices(count);
  {
    const nb::gil_scoped_release unlocked;
    indices.resize(self.sampler->next(indices));
  }
  nb::list list;
  for (const std::int64_t index : indices) list.append(index);
  return list;
}

nb::object draw_batch(BatchSamplerHandle& self) {
  std::vector<std::int64_t> indices;
  return self.sampler->next(indices) ? nb::cast(indices) : nb::none();
}

void bind_kinds(nb::class_<SamplerHandle>& sampler) {
  sampler.def_static("sequential", [](std::int64_t size) { return make<SequentialSampler>(size); })
      .def_static(
          "random",
          [](std::int64_t size, bool replacement, std::optional<std::int64_t> num_samples, std::uint64_t seed) {
            return make<RandomSampler>(
                size, RandomSamplerOptions{.seed = seed, .replacement = replacement, .num_samples = num_samples});
          },
          nb::arg("size"), nb::arg("replacement"), nb::arg("num_samples").none(), nb::arg("seed"))
      .def_static("subset_random",
                  [](std::vector<std::int64_t> indices, std::uint64_t seed) {
                    return make<SubsetRandomSampler>(std::move(indices), seed);
                  })
      .def_static("weighted",
                  [](std::vector<double> weights, std::int64_t num_samples, bool replacement, std::uint64_t seed) {
                    return make<WeightedRandomSampler>(
                        std::move(weights), num_samples,
                        WeightedRandomSamplerOptions{.replacement = replacement, .seed = seed});
                  })
      .def_static(
          "distributed",
          [](std::int64_t size, std::int64_t world_size, std::int64_t rank, bool shuffle, std::uint64_t seed,
             bool drop_last) {
            return make<DistributedSampler>(
                size,
                DistributedSamplerOptions{
                    .rank = rank, .world_size = world_size, .shuffle = shuffle, .seed = seed, .drop_last = drop_last});
          })
      .def_static(
          "feistel",
          [](std::int64_t size, std::int64_t world_size, std::int64_t rank, std::uint64_t seed, bool drop_last) {
            return make<FeistelSampler>(
                size,
                FeistelSamplerOptions{.seed = seed, .rank = rank, .world_size = world_size, .drop_last = drop_last});
          })
      .def_static("of_iterable",
                  [](nb::object iterable) { return SamplerHandle{sampler_of_iterable(std::move(iterable))}; });
}

}  // namespace

std::unique_ptr<Sampler> SamplerHandle::take() { return taken(sampler); }
std::unique_ptr<BatchSampler> BatchSamplerHandle::take() { return taken(sampler); }

void bind_sampler(nb::module_& module) {
  nb::class_<SamplerHandle> sampler(module, "Sampler");
  bind_kinds(sampler);
  sampler.def("start_epoch", [](SamplerHandle& self, std::uint64_t epoch) { self.sampler->start_epoch(epoch); })
      .def("next", draw)
      .def("size", [](const SamplerHandle& self) { return self.sampler->size(); });
  nb::class_<BatchSamplerHandle>(module, "BatchSampler")
      .def_static("fixed",
                  [](SamplerHandle& inner, std::int64_t batch_size, bool drop_last) {
                    return BatchSamplerHandle{std::make_unique<FixedBatchSampler>(
                        inner.take(), FixedBatchOptions{.batch_size = batch_size, .drop_last = drop_last})};
                  })
      .def_static("of_iterable",
                  [](nb::object iterable, std::int64_t max_batch_size) {
                    return BatchSamplerHandle{batch_sampler_of_iterable(std::move(iterable), max_batch_size)};
                  })
      .def("start_epoch", [](BatchSamplerHandle& self, std::uint64_t epoch) { self.sampler->start_epoch(epoch); })
      .def("next", draw_batch)
      .def("size", [](const BatchSamplerHandle& self) { return self.sampler->size(); });
}

}  // namespace infeed::python
