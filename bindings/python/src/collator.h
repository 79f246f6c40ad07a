#pragma once
/// default_collate in place: each sample's leaves go to their rows of the batch as soon as the sample is there.
///
/// A Plan is learnt from one sample: containers by exact type, and leaves by type, dtype and shape. While samples fit,
/// they are copied; the first that does not is "odd", and the caller does as torch would with all of them.

#include <nanobind/nanobind.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "leaves.h"

namespace infeed::python {

/// One container or leaf of the samples' structure.
struct PlanNode {
  enum class Kind : std::uint8_t {
    kTensor,
    kArray,
    kScalar,
    kInt,
    kFloat,
    kBool,
    kText,  // leaves; kScalar is NumPy's, kText str or bytes
    kTuple,
    kList,
    kDict,
    kNamed,
    kMapping  // kNamed: namedtuples; kMapping: subclasses of dict
  };
  Kind kind;
  nanobind::object type;  ///< of the sample's object, exactly

  // containers
  std::vector<PlanNode> children;
  std::vector<nanobind::object> keys;  ///< of kDict and kMapping, in the order of the batch's first sample
  nanobind::object shell;              ///< kMapping: the first sample's object, whose copy holds the batch

  // leaves
  DType dtype{};
  std::vector<std::int64_t> shape;  ///< of one sample
  std::size_t sample_bytes = 0;
  std::byte* rows = nullptr;  ///< where sample 0 lies
  nanobind::object descr;     ///< kArray: NumPy's dtype object
  nanobind::object texts;     ///< kText: list of the samples'

  [[nodiscard]] bool is_leaf() const { return kind < Kind::kTuple; }
  [[nodiscard]] bool is_dense() const { return kind < Kind::kText; }
};

/// What each batch of a dataset looks like, and where this batch's leaves lie.
class Plan {
 public:
  /// nullptr: something in `sample` is not for the fast path.
  [[nodiscard]] static std::unique_ptr<Plan> learn(nanobind::handle sample);

  /// Bytes of `count` samples' leaves, each aligned.
  [[nodiscard]] std::size_t bytes(std::size_t count) const;
  /// Gives the leaves of the next batch their places from `memory` on.
  void place(std::byte* memory, std::size_t count);
  /// Does a batch that begins with `sample` look as the last one? Keys in their order are part of that.
  [[nodiscard]] bool begins(nanobind::handle sample);
  /// Copies `sample` to row `row`; false: it is odd. Errors that the sample's own code raises propagate.
  bool put(nanobind::handle sample, std::size_t row);
  /// Row `row` as a sample again, in memory of its own.
  [[nodiscard]] nanobind::object rebuild(std::size_t row) const;
  /// Forgets the last batch's texts and shells.
  void clear();

  using MakeLeaf = std::function<nanobind::object(const PlanNode& leaf)>;
  /// The batch as default_collate returns it; `make_leaf` is called once for each dense leaf, in pickling order.
  [[nodiscard]] nanobind::object collated(const MakeLeaf& make_leaf) const;

  [[nodiscard]] std::size_t num_leaves() const { return leaves_.size(); }
  [[nodiscard]] const std::vector<PlanNode*>& leaves() const { return leaves_; }
  /// The batch's containers are told the leaves themselves: placeholders would not do.
  [[nodiscard]] bool needs_values() const { return needs_values_; }
  /// Each batch has the same containers, keys and no texts: its pickle is always the same.
  [[nodiscard]] bool constant() const { return constant_; }
  [[nodiscard]] const std::vector<nanobind::object>& types() const { return types_; }

  nanobind::object pickle;             ///< of the collated batch, where it is constant; else null
  std::vector<const PlanNode*> order;  ///< of the leaves in `pickle`

 private:
  Plan() = default;
  bool add(PlanNode& node, nanobind::handle sample);
  bool add_container(PlanNode& node, nanobind::handle sample);
  bool add_mapping(PlanNode& node, nanobind::handle sample);
  bool add_dense(PlanNode& node, nanobind::handle sample);
  void list_leaves(PlanNode& node);

  PlanNode root_{};
  std::vector<PlanNode*> leaves_;  // the dense ones
  std::vector<nanobind::object> types_;
  bool needs_values_ = false;
  bool constant_ = true;
};

}  // namespace infeed::python
