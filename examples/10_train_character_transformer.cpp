// A transformer learns to write the next character of texts. Their files are mapped: memory holds the pages in use, not
// the corpus. Stopped in the middle of an epoch and resumed, it ends with the same bits as a run without a stop.
#include <fcntl.h>
#include <infeed/infeed.h>
#include <infeed/train/train.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <numbers>
#include <span>

namespace nn = infeed::nn;
using infeed::Tensor;

namespace {

constexpr std::int64_t kVocabulary = 256;  // a token is a byte

struct Settings {
  std::vector<std::string> files;  // none: a text is made
  std::string out = "10-run";
  std::int64_t window = 64;
  std::int64_t width = 64;
  int layers = 2;
  int epochs = 6;
  std::int64_t batch_size = 32;
  double lr = 3e-3;
  int workers = 2;
  std::uint64_t seed = 1;
  std::int64_t stop_after = 0;
  bool resume = false;
};

// Sentences of a little grammar: something to learn in a minute.
std::string make_text(const std::string& path, int sentences) {
  const char* const nouns[] = {"the cat", "a loader", "my batch", "the ring", "one worker", "a slow disk"};
  const char* const verbs[] = {" sees ", " fills ", " waits for ", " likes ", " never drops "};
  infeed::Philox random(1, 0, 0);
  const auto pick = [&](auto& words) { return words[random.below(std::size(words))]; };
  std::ofstream file(path);
  for (int i = 0; i < sentences; ++i) file << pick(nouns) << pick(verbs) << pick(nouns) << (i % 3 == 2 ? ".\n" : ", ");
  return path;
}

Settings parse(int argc, char** argv) {
  Settings s;
  CLI::App app("Trains a transformer on the characters of texts");
  app.add_option("files", s.files, "Texts; the last tenth of each is kept back [one is made]");
  app.add_option("--out", s.out, "Folder of the checkpoint")->capture_default_str();
  app.add_option("--window", s.window, "Characters that it sees at once")->capture_default_str();
  app.add_option("--width", s.width, "Of the model, a multiple of 4")->capture_default_str();
  app.add_option("--layers", s.layers)->capture_default_str();
  app.add_option("--epochs", s.epochs)->capture_default_str();
  app.add_option("--batch-size", s.batch_size)->capture_default_str();
  app.add_option("--lr", s.lr, "Largest learning rate")->capture_default_str();
  app.add_option("--workers", s.workers, "Threads that cut windows")->capture_default_str();
  app.add_option("--seed", s.seed, "Of weights, order and dropout")->capture_default_str();
  app.add_option("--stop-after", s.stop_after, "Save and end after so many steps, wherever that is");
  app.add_flag("--resume", s.resume, "Go on from the checkpoint");
  app.footer("Where other programs want the same cores, set OMP_WAIT_POLICY=passive before (docs/train.md, Threads).");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    std::exit(app.exit(error));
  }
  if (s.files.empty()) s.files = {make_text("10-text.txt", 2'000)};
  return s;
}

// A file's bytes, for reading.
class MappedFile {
 public:
  explicit MappedFile(const std::string& path) {
    const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    struct stat status {};
    if (fd < 0 || fstat(fd, &status) != 0) throw std::runtime_error("cannot read " + path);
    size_ = static_cast<std::size_t>(status.st_size);
    data_ = mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, fd, 0);
    close(fd);  // the mapping stays
    if (data_ == MAP_FAILED) throw std::runtime_error("cannot map " + path + "; is it empty?");
  }
  ~MappedFile() { munmap(data_, size_); }
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  [[nodiscard]] std::span<const std::uint8_t> bytes() const { return {static_cast<const std::uint8_t*>(data_), size_}; }

 private:
  void* data_;
  std::size_t size_;
};

// Windows of texts, each half a window behind the one before. `token`: int64 [window + 1], the last one to be foreseen.
class Windows final : public infeed::Dataset {
 public:
  Windows(std::vector<std::span<const std::uint8_t>> texts, std::int64_t window)
      : texts_(std::move(texts)),
        length_(window + 1),
        step_(window / 2),
        schema_{{"token", infeed::DType::kInt64, {length_}}} {
    for (const auto& text : texts_) {
      const auto room = static_cast<std::int64_t>(text.size()) - length_;
      ends_.push_back((ends_.empty() ? 0 : ends_.back()) + (room < 0 ? 0 : room / step_ + 1));
    }
  }
  std::int64_t size() const override { return ends_.back(); }
  const infeed::Schema& schema() const override { return schema_; }
  void read(infeed::Row& row) const override {
    const auto text = std::upper_bound(ends_.begin(), ends_.end(), row.index()) - ends_.begin();
    const std::int64_t first = text == 0 ? 0 : ends_[static_cast<std::size_t>(text) - 1];
    const std::uint8_t* from = texts_[static_cast<std::size_t>(text)].data() + (row.index() - first) * step_;
    std::copy_n(from, length_, row.at("token").as<std::int64_t>());
  }

 private:
  std::vector<std::span<const std::uint8_t>> texts_;
  std::int64_t length_, step_;
  infeed::Schema schema_;
  std::vector<std::int64_t> ends_;  // windows of a text and all before it
};

class Model : public nn::Module {
 public:
  explicit Model(const Settings& s)
      : token_(register_module("token", nn::Embedding(kVocabulary, s.width))),
        place_(register_module("place", nn::Embedding(s.window, s.width))),
        encoder_(
            register_module("encoder", nn::TransformerEncoder({.d_model = s.width,
                                                               .nhead = 4,
                                                               .dim_feedforward = 4 * s.width,
                                                               .dropout = 0.1,
                                                               .activation = [](const Tensor& x) { return gelu(x); },
                                                               .batch_first = true,
                                                               .norm_first = true},
                                                              s.layers, true))),
        head_(register_module("head", nn::Linear(s.width, kVocabulary))) {}

  // int64 [N, L] to logits of the next tokens, [N, L, kVocabulary].
  Tensor forward(const Tensor& tokens) override {
    const Tensor x = (*token_)(tokens) + (*place_)(Tensor::arange(tokens.size(1)));
    return (*head_)(encoder_->forward(x, {.is_causal = true}));
  }

 private:
  std::shared_ptr<nn::Embedding> token_, place_;
  std::shared_ptr<nn::TransformerEncoder> encoder_;
  std::shared_ptr<nn::Linear> head_;
};

class Training {
 public:
  explicit Training(const Settings& s)
      : settings_(s),
        files_(s.files.begin(), s.files.end()),
        train_set_(parts(0.0, 0.9), s.window),
        val_set_(parts(0.9, 1.0), s.window),
        loader_(
            train_set_,
            {.batch_size = s.batch_size, .shuffle = true, .drop_last = true, .seed = s.seed, .num_workers = s.workers}),
        val_loader_(val_set_, {.batch_size = s.batch_size}),
        model_((infeed::manual_seed(s.seed), s)),
        adam_(model_.parameters(), infeed::optim::adamw_options({.lr = s.lr, .weight_decay = 0.1})),
        schedule_(adam_,
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
      std::printf("epoch %d: %.3f bits a character, %.3f of what was kept back\n", static_cast<int>(epoch) + 1,
                  loss / steps / std::numbers::ln2, validation_loss() / std::numbers::ln2);
      save();
    }
    std::printf("it writes: %s\n", write("the ", 80).c_str());
  }

 private:
  std::vector<std::span<const std::uint8_t>> parts(double from, double to) const {
    std::vector<std::span<const std::uint8_t>> result;
    for (const MappedFile& file : files_) {
      const auto size = static_cast<double>(file.bytes().size());
      const auto first = static_cast<std::size_t>(size * from);
      result.push_back(file.bytes().subspan(first, static_cast<std::size_t>(size * to) - first));
    }
    return result;
  }

  Tensor loss_of(const infeed::Batch& batch) {
    const Tensor tokens = Tensor::from_array(batch.at("token"), batch.owner());
    const Tensor logits = model_(tokens.narrow(1, 0, settings_.window));
    return nn::cross_entropy(logits.flatten(0, 1), tokens.narrow(1, 1, settings_.window).flatten());
  }

  double step(const infeed::Batch& batch) {
    const Tensor loss = loss_of(batch);
    adam_.zero_grad();
    loss.backward();
    adam_.step();
    schedule_.step();
    return loss.item();
  }

  double validation_loss() {
    const infeed::NoGradGuard no_grad;
    model_.eval();
    double loss = 0;
    int batches = 0;
    for (const infeed::Batch& batch : val_loader_) {
      loss += loss_of(batch).item();
      ++batches;
    }
    model_.train();
    return loss / batches;
  }

  // Goes on from `text`, each character drawn as likely as the model finds it.
  std::string write(std::string text, int count) {
    const infeed::NoGradGuard no_grad;
    model_.eval();
    for (int i = 0; i < count; ++i) {
      const auto seen = std::span(text).last(std::min(text.size(), static_cast<std::size_t>(settings_.window)));
      Tensor tokens = Tensor::empty({1, static_cast<std::int64_t>(seen.size())}, infeed::DType::kInt64);
      std::transform(seen.begin(), seen.end(), tokens.data<std::int64_t>(),
                     [](char c) { return static_cast<std::uint8_t>(c); });
      const Tensor chances = cumsum(nn::softmax(model_(tokens).select(0, 0).select(0, -1), 0), 0);
      const auto next = sum(lt(chances, infeed::rand({}))).item<std::int64_t>();
      text += static_cast<char>(std::min(next, kVocabulary - 1));
    }
    return text;
  }

  void save() const {
    infeed::Checkpoint now;
    now.set("model", model_.state_dict());
    now.set("optimizer", adam_.state_dict());
    now.set("schedule", schedule_.state_dict());
    now.set("loader", loader_.state_dict());
    now.set("random", {{"cpu", infeed::default_generator().get_state()}});  // dropout draws from it
    now.save(settings_.out);
  }

  void load() {
    const infeed::Checkpoint last = infeed::Checkpoint::load(settings_.out);
    model_.load_state_dict(last.at("model").tensors);
    adam_.load_state_dict(last.at("optimizer"));
    schedule_.load_state_dict(last.at("schedule").state);
    loader_.load_state_dict(last.at("loader").state);
    infeed::default_generator().set_state(last.at("random").find("cpu"));
  }

  Settings settings_;
  std::vector<MappedFile> files_;
  Windows train_set_, val_set_;
  infeed::Loader loader_, val_loader_;
  Model model_;
  infeed::optim::Adam adam_;
  infeed::optim::LRScheduler schedule_;
};

}  // namespace

int main(int argc, char** argv) try { Training(parse(argc, argv)).run(); } catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
