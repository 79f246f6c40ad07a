// What the C++ blocks of the documentation take as given. They are compiled, not run.
#pragma once

#include <infeed/infeed.h>
#include <infeed/plugin/dataset_plugin.h>
#include <infeed/train/train.h>

#include <cstdio>
#include <vector>

extern const infeed::ImageFolder& dataset;

template <class... Values>
void step(const Values&...);

/// The dataset of docs/dataset.md, as docs/plugins.md asks for it.
class Squares : public infeed::Dataset {
 public:
  explicit Squares(const infeed::State& params);
  std::int64_t size() const override;
  const infeed::Schema& schema() const override;
  void read(infeed::Row& row) const override;
};
