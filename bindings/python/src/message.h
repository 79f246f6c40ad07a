#pragma once
/// One reply of a worker: a tag, data of any structure, something small beside it. Start with Message; decode() reads.
///
///   | Header | tensors, arrays, buffers, each aligned to 128 bytes | leaf table | pickle of data | pickle of extra |
///
/// The pickles (protocol 5) take their leaves out of band, in the order of the table. A leaf is a place, a dtype, a shape
/// and strides; leaves that overlapped in the worker overlap here. docs/python_messages.md draws the bytes.

#include <nanobind/nanobind.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "collator.h"
#include "infeed/exchange/exchange.h"
#include "leaves.h"

namespace infeed::python {

inline constexpr std::uint64_t kMessageMagic = 0x31474d4445464e49;  // "INFEDMG1"
inline constexpr std::size_t kMessageAlign = 128;

struct MessageHeader {
  std::uint64_t magic;
  std::uint64_t checksum;  ///< of the rest of the header and of all behind table_offset
  std::int64_t tag;
  std::uint64_t nbytes;  ///< of the whole message
  std::uint64_t num_leaves;
  std::uint64_t table_offset;
  std::uint64_t data_offset;   ///< pickle of data; the table ends here or before
  std::uint64_t extra_offset;  ///< pickle of extra, to the end; none (nbytes): extra is None
};
static_assert(sizeof(MessageHeader) == 64);

enum class LeafKind : std::uint8_t { kTensor = 1, kArray = 2, kBuffer = 3 };

/// Followed by shape[ndim] and strides[ndim] (in items), 64-bit each.
struct LeafRecord {
  std::uint64_t offset;  ///< of element 0
  LeafKind kind;
  std::uint8_t ndim;
  std::uint8_t dtype_code, dtype_bits;
  std::uint16_t dtype_lanes;
  std::uint16_t zero;
};
static_assert(sizeof(LeafRecord) == 16);

/// Tells any two byte strings that differ within one 8-byte word apart.
[[nodiscard]] std::uint64_t checksum_of(std::span<const std::byte> bytes, std::uint64_t seed = 0) noexcept;

/// (tag, data, extra) of a message whose tensors and arrays view `lease`, any object with a writable buffer. Throws
/// ValueError for bytes that are no message, and what unpickling raises.
[[nodiscard]] nanobind::tuple decode(const nanobind::object& lease);

/// A message that is being written into an extent. `infeed._codec.Message` adds the pickling.
///
/// Threads: one, apart from stack(), which others may call.
class Message {
 public:
  explicit Message(nanobind::object memory);
  ~Message();
  Message(const Message&) = delete;
  Message& operator=(const Message&) = delete;

  /// Collates dataset[i] for i in `indices` in place: None. A list of the samples where that cannot be.
  /// `note`: called with each index that is an int, before its sample.
  [[nodiscard]] nanobind::object fetch(nanobind::handle dataset, nanobind::handle indices, nanobind::handle note);
  /// The same for a list of samples.
  [[nodiscard]] nanobind::object gather(const nanobind::list& samples);
  /// torch.stack of `batch` in the extent; None where only torch can do it, or outside of collate functions.
  [[nodiscard]] nanobind::object stack(nanobind::handle batch);

  /// The pickle of what fetch or gather collated; None where its containers must see the leaves: collated_value().
  [[nodiscard]] nanobind::object collated_pickle();
  [[nodiscard]] nanobind::object collated_value();

  /// The next out-of-band object of a pickle. false: this kind of tensor or array cannot be one.
  bool add_tensor(nanobind::object tensor);
  bool add_array(nanobind::object array);
  void add_buffer(const nanobind::object& buffer);
  void drop_leaves() noexcept { leaves_.clear(); }

  /// Writes it all; returns the length. `extra` None: none. MemoryError where the extent is too small.
  std::size_t write(std::int64_t tag, const nanobind::bytes& data, nanobind::handle extra);

  bool stacking = false;  ///< a collate function is running

 private:
  struct Leaf {
    LeafKind kind;
    DType dtype;
    std::vector<std::int64_t> shape, strides;  // strides in items
    const std::byte* data;
    std::size_t span;
    nanobind::object keep;
    std::size_t offset = 0;
  };

  template <typename NextSample>
  nanobind::object collect(std::size_t count, const NextSample& next);
  bool begin(nanobind::handle first, std::size_t count);
  bool place(nanobind::handle first, std::size_t count);
  nanobind::object rebuilt(std::size_t rows);
  std::byte* allocate(std::size_t bytes);
  void add_view(LeafKind kind, const LeafView& view, nanobind::object keep);
  void add_collated(const PlanNode& leaf);
  void place_leaves();
  std::byte* write_table(std::byte* out) const;
  [[noreturn]] void refuse_size(std::size_t needed) const;
  [[nodiscard]] std::vector<std::int64_t> batch_shape(const PlanNode& leaf) const;

  nanobind::object memory_;
  Py_buffer buffer_{};
  std::span<std::byte> bytes_;
  std::size_t used_ = kMessageAlign;  // the header's place
  std::unique_ptr<Plan> plan_;
  std::size_t rows_ = 0;
  std::vector<Leaf> leaves_;
  std::vector<nanobind::object> stacked_;  // weak references
};

}  // namespace infeed::python
