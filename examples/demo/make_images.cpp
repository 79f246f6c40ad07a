#include "make_images.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <fstream>
#include <iterator>
#include <limits>
#include <mutex>
#include <optional>
#include <sstream>
#include <thread>

#include "draw.h"
#include "encode.h"
#include "staging.h"

namespace demo {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr int kVersion = 1;  // of the drawing: another one makes another set
constexpr const char* kMarker = "image_set.txt";
constexpr std::uint64_t kUsualBytes = 100'000;  // a file, with what the file system adds

struct Task {
  fs::path path;  ///< below the root
  Texture texture{};
  std::uint64_t seed = 0;
};

// Image i of a split belongs to class i % 10. A seed of its own per image makes the files independent of the threads.
std::vector<Task> list_tasks(const ImageSetOptions& options) {
  std::vector<Task> tasks;
  const auto add = [&](const char* split, int count, std::uint64_t stream) {
    for (int i = 0; i < count; ++i) {
      const int texture = i % kNumTextures;
      std::string number = std::to_string(i / kNumTextures);
      number.insert(0, 5 - std::min<std::size_t>(5, number.size()), '0');
      Random mix(options.seed * 2 + stream);
      const std::uint64_t seed = Random(mix.bits() + static_cast<std::uint64_t>(i)).bits();
      tasks.push_back({fs::path(split) / kTextureNames[static_cast<std::size_t>(texture)] / (number + ".jpg"),
                       static_cast<Texture>(texture), seed});
    }
  };
  add("train", options.train, 0);
  add("val", options.val, 1);
  return tasks;
}

// --- the marker: options first, then what was made ---

std::string describe(const ImageSetOptions& options) {
  std::ostringstream text;
  text << "infeed demo image set, version " << kVersion << "\ntrain " << options.train << "\nval " << options.val
       << "\nseed " << options.seed << "\n";
  return text.str();
}

std::string describe(const ImageSetSummary& summary) {
  std::ostringstream text;
  text << "bytes " << summary.total_bytes << " " << summary.min_bytes << " " << summary.max_bytes << "\n";
  return text.str();
}

std::optional<std::string> read_marker(const fs::path& root) {
  std::ifstream file(root / kMarker);
  if (!file) return std::nullopt;
  return std::string(std::istreambuf_iterator<char>(file), {});
}

int count_images(const fs::path& split) {
  std::error_code error;
  int count = 0;
  for (fs::recursive_directory_iterator at(split, error), end; !error && at != end; at.increment(error)) {
    count += at->path().extension() == ".jpg" ? 1 : 0;
  }
  return count;
}

// The set that is there, if it is the one asked for and no file is missing.
std::optional<ImageSetSummary> find_existing(const ImageSetOptions& options) {
  const std::optional<std::string> marker = read_marker(options.root);
  const std::string wanted = describe(options);
  if (!marker || marker->rfind(wanted, 0) != 0) return std::nullopt;
  if (count_images(options.root / "train") != options.train || count_images(options.root / "val") != options.val) {
    return std::nullopt;
  }
  ImageSetSummary summary;
  std::istringstream rest(marker->substr(wanted.size()));
  std::string word;
  rest >> word >> summary.total_bytes >> summary.min_bytes >> summary.max_bytes;
  if (!rest) return std::nullopt;
  summary.reused = true;
  return summary;
}

// --- checks before any work ---

void check_options(const ImageSetOptions& options) {
  if (options.root.empty()) throw ImageSetError("the image set needs a folder: root is empty");
  if (options.train < 0 || options.val < 0 || options.train > 1'000'000 || options.val > 1'000'000 ||
      options.train + options.val == 0) {
    throw ImageSetError("an image set of " + std::to_string(options.train) + " train and " +
                        std::to_string(options.val) + " val images cannot be made; give 1 to 1,000,000");
  }
}

void check_place(const fs::path& root) {
  std::error_code error;
  if (!fs::exists(root, error) || read_marker(root)) return;
  if (fs::is_directory(root, error) && fs::is_empty(root, error)) return;
  throw ImageSetError(root.string() +
                      " exists and is not an image set of this program; choose another folder or remove it");
}

void check_space(const Staging& staging, std::size_t images) {
  std::error_code error;
  const fs::space_info space = fs::space(staging.folder(), error);
  const std::uint64_t need = images * kUsualBytes;
  if (error || space.available >= need) return;
  throw ImageSetError("the image set needs about " + std::to_string(need >> 20) + " MiB, " + staging.folder().string() +
                      " has " + std::to_string(space.available >> 20) +
                      " MiB left; free some space or choose another folder");
}

// --- the work ---

// Threads draw the next picture of the list until none is left or one has failed.
class Studio {
 public:
  Studio(const std::vector<Task>& tasks, const Staging& staging) : tasks_(tasks), staging_(staging) {}

  ImageSetSummary run(int num_threads, const ImageSetProgress& progress) {
    {
      std::vector<std::jthread> threads;
      const StopAll stop{next_, tasks_.size()};  // if progress throws: before the threads are joined
      for (int i = 0; i < num_threads; ++i) threads.emplace_back([this] { work(); });
      report_until_done(progress);
    }
    if (failure_) std::rethrow_exception(failure_);
    return summary_;
  }

 private:
  struct StopAll {
    std::atomic<std::size_t>& next;
    std::size_t end;
    ~StopAll() { next = end; }
  };

  void report_until_done(const ImageSetProgress& progress) {
    std::unique_lock lock(mutex_);
    bool finished = false;
    while (!finished) {
      finished =
          changed_.wait_for(lock, std::chrono::milliseconds(200), [&] { return failure_ || done_ == tasks_.size(); });
      const auto done = static_cast<int>(done_);
      lock.unlock();
      if (progress && !failed()) progress(done, static_cast<int>(tasks_.size()));
      lock.lock();
    }
  }

  bool failed() {
    const std::lock_guard lock(mutex_);
    return failure_ != nullptr;
  }

  void work() noexcept {
    try {
      JpegEncoder encoder;
      for (std::size_t i = next_++; i < tasks_.size(); i = next_++) make_one(encoder, tasks_[i]);
    } catch (...) {
      const std::lock_guard lock(mutex_);
      if (!failure_) failure_ = std::current_exception();
      next_ = tasks_.size();
      changed_.notify_all();
    }
  }

  void make_one(JpegEncoder& encoder, const Task& task) {
    Random random(task.seed);
    const auto target = static_cast<std::size_t>(random.uniform(88'500, 108'500));
    const auto file = encoder.encode(draw_picture(task.texture, Random(random.bits())), target);
    staging_.write_file(task.path, file.data(), file.size());
    const std::lock_guard lock(mutex_);
    summary_.total_bytes += file.size();
    summary_.min_bytes = std::min<std::uint64_t>(summary_.min_bytes, file.size());
    summary_.max_bytes = std::max<std::uint64_t>(summary_.max_bytes, file.size());
    if (++done_ == tasks_.size()) changed_.notify_all();
  }

  const std::vector<Task>& tasks_;
  const Staging& staging_;
  std::atomic<std::size_t> next_ = 0;
  std::mutex mutex_;  // over what follows
  std::condition_variable changed_;
  std::size_t done_ = 0;
  std::exception_ptr failure_;
  ImageSetSummary summary_{.min_bytes = std::numeric_limits<std::uint64_t>::max()};
};

int choose_threads(const ImageSetOptions& options, std::size_t tasks) {
  const int wanted = options.threads > 0 ? options.threads : static_cast<int>(std::thread::hardware_concurrency());
  return std::clamp(wanted, 1, static_cast<int>(std::min<std::size_t>(tasks, 256)));
}

ImageSetSummary make_new(const ImageSetOptions& options, const ImageSetProgress& progress) {
  check_place(options.root);
  Staging staging(options.root);
  const std::vector<Task> tasks = list_tasks(options);
  check_space(staging, tasks.size());
  for (const char* split : {"train", "val"}) {
    for (const char* name : kTextureNames) staging.make_folder(fs::path(split) / name);
  }
  ImageSetSummary summary = Studio(tasks, staging).run(choose_threads(options, tasks.size()), progress);
  const std::string marker = describe(options) + describe(summary);
  staging.write_file(kMarker, marker.data(), marker.size());
  if (const auto made = find_existing(options)) return *made;  // another process was faster, and may be reading
  check_place(options.root);
  staging.commit();
  return summary;
}

}  // namespace

ImageSetSummary make_image_set(const ImageSetOptions& asked, const ImageSetProgress& progress) {
  const auto begin = Clock::now();
  ImageSetOptions options = asked;
  check_options(options);
  options.root = fs::absolute(options.root).lexically_normal();
  if (!options.root.has_filename()) options.root = options.root.parent_path();  // "set/" names the same as "set"
  std::optional<ImageSetSummary> found = find_existing(options);
  ImageSetSummary summary = found ? *found : make_new(options, progress);
  summary.classes.assign(kTextureNames.begin(), kTextureNames.end());
  summary.train = options.train;
  summary.val = options.val;
  summary.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  return summary;
}

}  // namespace demo
