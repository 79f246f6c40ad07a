#pragma once
/// Pictures and chains of geometry that reach every path of the kernels.

#include <string>
#include <vector>

#include "transform/plan.h"

namespace infeed::testing {

struct Scene {
  std::string name;
  int seed = 0;
  FusedPlan plan;
};

inline std::vector<Scene> scenes() {
  std::vector<Scene> all;
  const auto add = [&](const char* name, int width, int height, auto&& chain) {
    PlanBuilder plan(width, height);
    chain(plan);
    all.push_back({name, static_cast<int>(all.size()), plan.finish()});
  };
  using P = PlanBuilder&;
  add("half", 96, 64, [](P p) { p.resize(48, 32); });
  add("crop and shrink", 500, 375, [](P p) { p.crop(30, 20, 310, 262), p.resize(224, 224); });
  add("crop, shrink, flip", 500, 375, [](P p) { p.crop(31, 9, 253, 300), p.resize(224, 224), p.flip(); });
  add("crop and enlarge", 500, 375, [](P p) { p.crop(130, 120, 110, 97), p.resize(224, 224), p.flip(); });
  add("shrink 2.2 times", 500, 375, [](P p) { p.resize(224, 170); });
  add("shrink 3.5 times", 350, 210, [](P p) { p.resize(100, 60); });
  add("shrink 5 times", 500, 100, [](P p) { p.resize(100, 20), p.flip(); });
  add("shrink 20 times", 900, 640, [](P p) { p.resize(45, 32); });
  add("shrink 200 times", 6200, 10, [](P p) { p.resize(31, 9); });
  add("shrink 400 times", 2000, 1200, [](P p) { p.resize(5, 3); });
  add("one pixel", 1, 1, [](P p) { p.resize(19, 5); });
  add("to one pixel", 77, 33, [](P p) { p.resize(1, 1); });
  add("shorter side, center", 500, 375, [](P p) { p.resize(Resize{256, 0}), p.center_crop({224, 224}); });
  add("padded after", 40, 90, [](P p) { p.resize(Resize{32, 0}), p.center_crop({101, 47}), p.flip(); });
  add("padded before", 40, 30, [](P p) { p.center_crop({61, 50}), p.resize(35, 41); });
  add("padding only", 9, 9, [](P p) { p.center_crop({40, 40}), p.crop(0, 0, 12, 12), p.resize(20, 20); });
  add("copy", 70, 50, [](P p) { p.crop(3, 4, 61, 43); });
  add("copy, flip", 70, 50, [](P p) { p.crop(3, 4, 61, 43), p.flip(); });
  add("copy, padded", 20, 10, [](P p) { p.center_crop({25, 33}), p.flip(); });
  add("rows only", 64, 90, [](P p) { p.resize(64, 31), p.flip(); });
  return all;
}

}  // namespace infeed::testing
