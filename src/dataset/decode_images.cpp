#include "infeed/dataset/decode_images.h"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <thread>
#include <vector>

#include "dataset/image_reader.h"
#include "infeed/base/error.h"

namespace infeed {
namespace {

int usable_cpus() noexcept {
  cpu_set_t set;
  CPU_ZERO(&set);
  return ::sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

class Job {
 public:
  Job(std::span<const ImageSource> sources, const DecodeImagesOptions& options, const ImageStore& store)
      : sources_(sources), options_(options), store_(store), failures_(sources.size()) {}

  /// One thread's part: pictures until none is left. After a failure only those before it still matter.
  void work() noexcept {
    std::unique_ptr<Tools> tools;
    for (std::size_t i = next_++; i < sources_.size() && i < first_failure_; i = next_++) {
      try {
        if (!tools) tools = std::make_unique<Tools>();
        decode(*tools, i);
      } catch (...) {
        failures_[i] = std::current_exception();
        std::size_t first = first_failure_;
        while (i < first && !first_failure_.compare_exchange_weak(first, i)) {
        }
      }
    }
  }

  void rethrow() const {
    if (first_failure_ < sources_.size()) std::rethrow_exception(failures_[first_failure_]);
  }

 private:
  struct Tools {
    FileBuffer file;
    Decoder decoder;
    FusedKernel kernel;
  };

  void decode(Tools& tools, std::size_t i) const {
    const ImageSource& source = sources_[i];
    const std::string name = source.path.empty() ? fmt::format("picture {}", i) : source.path;
    try {
      const auto bytes = source.path.empty() ? source.bytes : tools.file.read(source.path);
      const ImageInfo info = tools.decoder.open(bytes, options_.decode);
      const FusedPlan plan = plan_sample(options_.transforms, info.width, info.height, Philox(options_.seed, 0, i));
      const Shape shape = options_.transforms.layout() == ImageLayout::kCHW ? Shape{3, plan.out_height, plan.out_width}
                                                                            : Shape{plan.out_height, plan.out_width, 3};
      const auto planes = decode_planes_if_asked(tools.decoder, plan, options_.decode);
      const PixelWindow* pixels =
          planes ? nullptr : &tools.decoder.decode(plan.window, plan.out_width, plan.out_height);
      const ArrayView out(store_(i, shape), options_.transforms.dtype(), shape);
      planes ? tools.kernel.run(options_.transforms, plan, *planes, out)
             : tools.kernel.run(options_.transforms, plan, *pixels, out);
    } catch (const DecodeError& error) {
      throw DecodeError(error.fault(), fmt::format("{}: {}", name, error.what()));
    } catch (const DataError& error) {
      throw DataError(fmt::format("{}: {}", name, error.what()));
    }
  }

  std::span<const ImageSource> sources_;
  const DecodeImagesOptions& options_;
  const ImageStore& store_;
  std::atomic<std::size_t> next_{0};
  std::atomic<std::size_t> first_failure_{SIZE_MAX};
  std::vector<std::exception_ptr> failures_;
};

}  // namespace

void decode_images(std::span<const ImageSource> sources, const DecodeImagesOptions& options, const ImageStore& store) {
  if (options.threads < 0)
    throw ConfigError(fmt::format("threads is {}; use 0 for one per usable CPU.", options.threads));
  const std::size_t wanted = static_cast<std::size_t>(options.threads == 0 ? usable_cpus() : options.threads);
  Job job(sources, options, store);
  {
    std::vector<std::jthread> others;
    while (others.size() + 1 < std::min(wanted, sources.size())) others.emplace_back([&job] { job.work(); });
    job.work();
  }
  job.rethrow();
}

}  // namespace infeed
