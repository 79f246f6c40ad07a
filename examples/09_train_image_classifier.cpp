// A small residual network learns a folder of pictures, is validated after each epoch, and saves all it needs to go on:
// stopped in the middle of an epoch and resumed, it ends with the same bits as a run without a stop.
#include <infeed/infeed.h>
#include <infeed/train/train.h>

#include <CLI/CLI.hpp>
#include <cstdio>

#include "make_images.h"  // the demo's: paints pictures where no folder is given

namespace nn = infeed::nn;
using infeed::Tensor;

namespace {

struct Settings {
  std::string data;  // ROOT/train/CLASS/*.jpg and ROOT/val/CLASS/*.jpg; empty: made
  std::string out = "09-run";
  int pictures = 400;
  int side = 64;
  int epochs = 4;
  std::int64_t batch_size = 32;
  double lr = 0.1;
  int workers = 2;
  std::uint64_t seed = 1;
  std::int64_t stop_after = 0;
  bool resume = false;
};

Settings parse(int argc, char** argv) {
  Settings s;
  CLI::App app("Trains a small residual network on a folder of pictures");
  app.add_option("--data", s.data, "Folder with train/CLASS/*.jpg and val/CLASS/*.jpg [made in 09-images]");
  app.add_option("--out", s.out, "Folder of the checkpoint")->capture_default_str();
  app.add_option("--pictures", s.pictures, "How many to make where --data is not given")->capture_default_str();
  app.add_option("--side", s.side, "Pictures are cropped to side x side")->capture_default_str();
  app.add_option("--epochs", s.epochs)->capture_default_str();
  app.add_option("--batch-size", s.batch_size)->capture_default_str();
  app.add_option("--lr", s.lr, "Largest learning rate")->capture_default_str();
  app.add_option("--workers", s.workers, "Threads that decode")->capture_default_str();
  app.add_option("--seed", s.seed, "Of weights, order and crops")->capture_default_str();
  app.add_option("--stop-after", s.stop_after, "Save and end after so many steps, wherever that is");
  app.add_flag("--resume", s.resume, "Go on from the checkpoint");
  app.footer("Where other programs want the same cores, set OMP_WAIT_POLICY=passive before (docs/train.md, Threads).");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    std::exit(app.exit(error));
  }
  if (s.data.empty()) {
    s.data = "09-images";
    demo::make_image_set({.root = s.data, .train = s.pictures, .val = s.pictures / 4});
  }
  return s;
}

// Two convolutions beside a shortcut (He et al., 2016).
class Block : public nn::Module {
 public:
  Block(std::int64_t in, std::int64_t out, std::int64_t stride) {
    const auto conv = [](std::int64_t from, std::int64_t to, std::int64_t kernel, std::int64_t step) {
      return nn::Conv2d({.in_channels = from,
                         .out_channels = to,
                         .kernel_size = kernel,
                         .stride = step,
                         .padding = kernel / 2,
                         .bias = false});
    };
    body_ = register_module("body", nn::Sequential(conv(in, out, 3, stride), nn::BatchNorm2d(out), nn::ReLU(),
                                                   conv(out, out, 3, 1), nn::BatchNorm2d(out)));
    if (in != out)
      shortcut_ = register_module("shortcut", nn::Sequential(conv(in, out, 1, stride), nn::BatchNorm2d(out)));
  }
  Tensor forward(const Tensor& x) override { return relu((*body_)(x) + (shortcut_ ? (*shortcut_)(x) : x)); }

 private:
  std::shared_ptr<nn::Sequential> body_, shortcut_;
};

nn::Sequential make_model(std::int64_t classes, std::uint64_t seed) {
  infeed::manual_seed(seed);
  return nn::Sequential(
      nn::Conv2d({.in_channels = 3, .out_channels = 16, .kernel_size = 3, .padding = 1, .bias = false}),
      nn::BatchNorm2d(16), nn::ReLU(), Block(16, 16, 1), Block(16, 32, 2), Block(32, 64, 2), nn::AdaptiveAvgPool2d(1),
      nn::Flatten(), nn::Linear(64, classes));
}

class Training {
 public:
  explicit Training(const Settings& s)
      : settings_(s),
        train_set_(s.data + "/train", {.transforms = {infeed::random_resized_crop(s.side),
                                                      infeed::random_horizontal_flip(), infeed::normalize()}}),
        val_set_(s.data + "/val",
                 {.transforms = {infeed::resize(s.side * 9 / 8), infeed::center_crop(s.side), infeed::normalize()}}),
        loader_(
            train_set_,
            {.batch_size = s.batch_size, .shuffle = true, .drop_last = true, .seed = s.seed, .num_workers = s.workers}),
        val_loader_(val_set_, {.batch_size = s.batch_size, .num_workers = s.workers}),
        model_(make_model(static_cast<std::int64_t>(train_set_.classes().size()), s.seed)),
        sgd_(model_.parameters(), {.lr = s.lr, .momentum = 0.9, .weight_decay = 1e-4, .nesterov = true}),
        schedule_(sgd_,
                  infeed::optim::one_cycle_lr({.max_lr = s.lr, .total_steps = loader_.size().value() * s.epochs})) {
    if (s.resume) load();
  }

  void run() {
    while (loader_.epoch() < static_cast<std::uint64_t>(settings_.epochs)) {
      const std::uint64_t epoch = loader_.epoch();
      double loss = 0;
      int steps = 0;
      while (const auto batch = loader_.next()) {
        loss += step(*batch);
        ++steps;
        if (--settings_.stop_after == 0) return save();
      }
      std::printf("epoch %d: loss %.3f, %.1f %% of the pictures kept back are right\n", static_cast<int>(epoch) + 1,
                  loss / steps, 100 * accuracy());
      save();
    }
  }

 private:
  // The tensors view the batch's memory.
  static Tensor field(const infeed::Batch& batch, const char* name) {
    return Tensor::from_array(batch.at(name), batch.owner());
  }

  double step(const infeed::Batch& batch) {
    const Tensor loss =
        nn::cross_entropy(model_(field(batch, "image")), field(batch, "label"), {.label_smoothing = 0.05});
    sgd_.zero_grad();
    loss.backward();
    sgd_.step();
    schedule_.step();
    return loss.item();
  }

  double accuracy() {
    const infeed::NoGradGuard no_grad;
    model_.eval();
    std::int64_t right = 0;
    while (const auto batch = val_loader_.next())
      right += sum(eq(argmax(model_(field(*batch, "image")), 1), field(*batch, "label"))).item<std::int64_t>();
    model_.train();
    return static_cast<double>(right) / static_cast<double>(val_set_.size());
  }

  void save() const {
    infeed::Checkpoint now;
    now.set("model", model_.state_dict());
    now.set("optimizer", sgd_.state_dict());
    now.set("schedule", schedule_.state_dict());
    now.set("loader", loader_.state_dict());
    now.save(settings_.out);
  }

  void load() {
    const infeed::Checkpoint last = infeed::Checkpoint::load(settings_.out);
    model_.load_state_dict(last.at("model").tensors);
    sgd_.load_state_dict(last.at("optimizer"));
    schedule_.load_state_dict(last.at("schedule").state);
    loader_.load_state_dict(last.at("loader").state);
  }

  Settings settings_;
  infeed::ImageFolder train_set_, val_set_;
  infeed::Loader loader_, val_loader_;
  nn::Sequential model_;
  infeed::optim::SGD sgd_;
  infeed::optim::LRScheduler schedule_;
};

}  // namespace

int main(int argc, char** argv) try { Training(parse(argc, argv)).run(); } catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
