#include "train.h"

#include <fmt/format.h>

#include "console.h"
#include "model.h"
#include "stop.h"

namespace demo {
namespace {

constexpr std::int64_t kTimeoutMs = 60'000;  // a batch takes a tenth of a second: later something is wrong

class Run {
 public:
  explicit Run(const TrainOptions& options)
      : options_(options),
        train_set_(open_training_set(options.data + "/train")),
        val_set_(open_validation_set(options.data + "/val")),
        train_loader_(train_set_, training_loader(infeed::WorkerKind::kFork, options.workers, options.seed)),
        val_loader_(val_set_, {.batch_size = kBatchSize,
                               .num_workers = options.workers,
                               .worker_kind = infeed::WorkerKind::kFork,
                               .timeout_ms = kTimeoutMs}),
        trainer_({.classes = static_cast<int>(train_set_.classes().size()),
                  .total_steps = train_loader_.size().value() * options.epochs,
                  .seed = options.seed}) {}

  TrainReport operator()() {
    say(fmt::format("  {:.1f} k parameters, {} epochs of {} batches of {}",
                    static_cast<double>(count_parameters(trainer_.model())) / 1e3, options_.epochs,
                    train_loader_.size().value(), kBatchSize));
    say("  epoch     loss   val. accuracy   samples/s   waited for data   memory so far, peak");
    for (int epoch = 0; epoch < options_.epochs; ++epoch) {
      train_loader_.reset_stats();
      EpochReport report = train_epoch(epoch);
      report.accuracy = validate();
      memory_.sample(true);
      print(epoch, report);
      report_.epochs.push_back(report);
    }
    report_.verdict = train_loader_.stats().verdict().str();
    report_.peak_bytes = memory_.bytes();
    report_.seconds = clock_.seconds();
    return report_;
  }

 private:
  EpochReport train_epoch(int epoch) {
    const Stopwatch whole;
    double waited = 0, loss = 0;
    std::int64_t batches = 0;
    for (;;) {
      const Stopwatch wait;
      const auto batch = train_loader_.next();
      waited += wait.seconds();
      if (!batch) break;
      loss += trainer_.step(*batch);
      ++batches;
      stop_if_asked();
      memory_.sample();
      tell(epoch, batches, loss / static_cast<double>(batches), whole.seconds());
    }
    progress_.clear();
    const double seconds = whole.seconds();
    return {.loss = loss / static_cast<double>(batches),
            .samples_per_s = static_cast<double>(batches * kBatchSize) / seconds,
            .waited_share = waited / seconds,
            .seconds = seconds};
  }

  double validate() {
    std::int64_t hits = 0;
    while (const auto batch = val_loader_.next()) {
      hits += trainer_.count_hits(*batch);
      stop_if_asked();
    }
    return static_cast<double>(hits) / static_cast<double>(val_set_.size());
  }

  void tell(int epoch, std::int64_t batches, double loss, double seconds) {
    if (!progress_.due()) return;
    const std::int64_t per_epoch = train_loader_.size().value();
    const double share = (epoch + static_cast<double>(batches) / static_cast<double>(per_epoch)) / options_.epochs;
    progress_.update(fmt::format("epoch {} of {}, batch {} of {}, loss {:.3f}, {:.0f} samples/s, {} left", epoch + 1,
                                 options_.epochs, batches, per_epoch, loss,
                                 static_cast<double>(batches * kBatchSize) / seconds,
                                 duration_text(clock_.seconds() * (1 / share - 1))));
  }

  void print(int epoch, const EpochReport& report) const {
    say(fmt::format("  {:>5}   {:>6.3f}   {:>11.1f} %   {:>9.0f}   {:>13.1f} %   {:>16.0f} MB", epoch + 1, report.loss,
                    report.accuracy * 100, report.samples_per_s, report.waited_share * 100,
                    static_cast<double>(memory_.bytes()) / 1e6));
  }

  TrainOptions options_;
  infeed::ImageFolder train_set_, val_set_;
  infeed::Loader train_loader_, val_loader_;
  Trainer trainer_;
  ProgressLine progress_;
  PeakMemory memory_;
  Stopwatch clock_;
  TrainReport report_;
};

}  // namespace

infeed::ImageFolder open_training_set(const std::string& root) {
  // exact = false: where the crop is reduced twofold or more, the JPEG is decoded at half its size.
  return infeed::ImageFolder(
      root, {.transforms = {infeed::RandomResizedCrop{.height = kImageSide, .width = kImageSide, .scale = {0.35, 1.0}},
                            infeed::random_horizontal_flip(), infeed::normalize()},
             .decode = {.exact = false}});
}

infeed::ImageFolder open_validation_set(const std::string& root) {
  return infeed::ImageFolder(root,
                             {.transforms = {infeed::resize(73), infeed::center_crop(kImageSide), infeed::normalize()},
                              .decode = {.exact = false}});
}

infeed::LoaderOptions training_loader(infeed::WorkerKind kind, int workers, std::uint64_t seed) {
  return {.batch_size = kBatchSize,
          .shuffle = true,
          .drop_last = true,
          .seed = seed,
          .num_workers = workers,
          .worker_kind = kind,
          .timeout_ms = kTimeoutMs};
}

TrainReport train(const TrainOptions& options) { return Run(options)(); }

}  // namespace demo
