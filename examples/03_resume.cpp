// Stop in the middle of an epoch, go on later, even with other workers: the batches are those of a run without a stop.
#include <infeed/infeed.h>

#include <cstdio>
#include <fstream>
#include <iterator>

namespace {

constexpr const char* kCheckpoint = "03-checkpoint.json";

infeed::LoaderOptions options(infeed::WorkerKind kind, int workers) {
  return {.batch_size = 32, .shuffle = true, .seed = 7, .num_workers = workers, .worker_kind = kind};
}

void train_and_stop(const infeed::Dataset& dataset) {
  infeed::Loader loader(dataset, options(infeed::WorkerKind::kThread, 2));
  for (int step = 0; step < 10; ++step) static_cast<void>(loader.next());
  // What is saved is the last batch in hand; what workers have prepared beyond it does not count.
  std::ofstream(kCheckpoint) << loader.state_dict().to_json();
}

std::vector<std::int64_t> resume(const infeed::Dataset& dataset) {
  infeed::Loader loader(dataset, options(infeed::WorkerKind::kFork, 3));
  std::ifstream file(kCheckpoint);
  loader.load_state_dict(infeed::State::from_json(std::string(std::istreambuf_iterator<char>(file), {})));
  const auto batch = loader.next();
  std::printf("resumed at batch %llu of epoch %llu\n", static_cast<unsigned long long>(batch->number()),
              static_cast<unsigned long long>(batch->epoch()));
  return batch->indices();
}

std::vector<std::int64_t> without_a_stop(const infeed::Dataset& dataset) {
  infeed::Loader loader(dataset, options(infeed::WorkerKind::kInline, 0));
  for (int step = 0; step < 10; ++step) static_cast<void>(loader.next());
  return loader.next()->indices();
}

}  // namespace

int main() {
  const infeed::SyntheticDataset dataset(1'000, {{"index", infeed::DType::kInt64, {}}});
  train_and_stop(dataset);
  const bool same = resume(dataset) == without_a_stop(dataset);
  std::printf("the batch is %s as without a stop\n", same ? "the same" : "NOT the same");
  return same ? 0 : 1;
}
