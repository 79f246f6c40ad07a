#include "infeed/torch/message.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>
#include <c10/util/StringUtil.h>

#include <array>
#include <limits>

#include "infeed/base/copy.h"
#include "infeed/base/error.h"
#include "infeed/torch/tensor.h"

namespace infeed::torch {
namespace {

constexpr std::size_t kAlign = 64;
constexpr const char* kSkeleton = "skeleton";
constexpr const char* kTensors = "tensors";
constexpr std::size_t kNameBytes = 12;

// A tensor in the skeleton; `ndim` sizes, then strides, int64 each, follow.
struct Record {
  std::array<char, kNameBytes> array;  // its elements are there; zero-padded
  std::int8_t dtype;
  bool defined;
  bool requires_grad;
  std::uint8_t ndim;
  std::uint64_t offset;
};

std::size_t round_up(std::size_t bytes) { return (bytes + kAlign - 1) / kAlign * kAlign; }

/// The values of a tensor whose bytes can be copied.
at::Tensor plain(const at::Tensor& tensor) {
  if (tensor.device().is_cpu() && tensor.layout() == at::kStrided && !tensor.is_quantized() && !tensor.is_nested()) {
    if (tensor._is_zerotensor()) return at::zeros(tensor.sizes(), tensor.options());  // it has no memory
    return tensor.resolve_conj().resolve_neg();
  }
  throw DataError(c10::str("a tensor of dtype ", tensor.scalar_type(), ", layout ", tensor.layout(), ", on ",
                           tensor.device(),
                           " cannot cross from a worker: only dense CPU tensors do. Convert it in the ",
                           "dataset, and move it to a device in the consumer."));
}

/// The bytes of a tensor without gaps, to the same strides.
void copy_dense(std::byte* to, const at::Tensor& tensor) {
  copy_bytes(to, static_cast<const std::byte*>(tensor.const_data_ptr()), tensor.nbytes());
}

}  // namespace

void StackedRows::begin(const at::Tensor& sample, CollateOutput& out, const std::string& name) {
  name_ = name;
  std::vector<std::int64_t> sizes = sample.sizes().vec();
  sizes.insert(sizes.begin(), static_cast<std::int64_t>(count_));
  const auto bytes = static_cast<std::int64_t>(count_ * sample.nbytes());
  const ArrayView memory = out.add(name, DType::kUInt8, Shape{bytes});
  rows_ = at::from_blob(memory.data, sizes, sample.options().requires_grad(false));
}

void StackedRows::put(const at::Tensor& given, CollateOutput& out, const std::string& name) {
  if (!given.defined()) throw DataError(c10::str("stack: sample ", filled_, " of the batch is an undefined tensor."));
  const at::Tensor sample = plain(given);
  if (filled_ == 0) begin(sample, out, name);
  if (sample.sizes() != rows_.sizes().slice(1))
    throw DataError(c10::str("stack: sample ", filled_, " of the batch has the shape ", sample.sizes(),
                             ", the first has ", rows_.sizes().slice(1), "."));
  if (!promoted_.empty() || sample.scalar_type() != rows_.scalar_type()) return promote(sample);
  if (sample.is_contiguous()) {
    copy_dense(static_cast<std::byte*>(rows_.mutable_data_ptr()) + filled_ * sample.nbytes(), sample);
  } else {
    rows_.select(0, static_cast<std::int64_t>(filled_)).copy_(sample.detach());
  }
  ++filled_;
}

void StackedRows::promote(const at::Tensor& sample) {
  if (promoted_.empty()) promoted_ = rows_.narrow(0, 0, static_cast<std::int64_t>(filled_)).unbind();
  promoted_.push_back(sample.detach());
  ++filled_;
}

void MessageWriter::record(const at::Tensor& tensor, const std::string& array, std::size_t offset) {
  Record record = {};
  record.defined = tensor.defined();
  if (record.defined) {
    array.copy(record.array.data(), kNameBytes - 1);
    record.dtype = static_cast<std::int8_t>(tensor.scalar_type());
    record.requires_grad = tensor.requires_grad() && tensor.is_leaf();
    record.ndim = static_cast<std::uint8_t>(tensor.dim());
    record.offset = offset;
  }
  value(record);
  if (!record.defined) return;
  bytes(std::as_bytes(std::span(tensor.sizes().data(), tensor.sizes().size())));
  bytes(std::as_bytes(std::span(tensor.strides().data(), tensor.strides().size())));
}

void MessageWriter::tensor(const at::Tensor& tensor) {
  if (!tensor.defined()) return record(tensor, "", 0);
  at::Tensor dense = plain(tensor);
  if (!dense.is_non_overlapping_and_dense()) dense = dense.contiguous();
  record(dense, kTensors, tensor_bytes_);
  offsets_.push_back(tensor_bytes_);
  tensor_bytes_ += round_up(dense.nbytes());
  tensors_.push_back(std::move(dense));
}

void MessageWriter::stacked(StackedRows& rows) {
  if (!rows.promoted_.empty()) return tensor(at::stack(rows.promoted_));
  if (rows.filled_ == 0) throw DataError("stack: the batch has no samples.");
  record(rows.rows_, rows.name_, 0);
}

void MessageWriter::finish() {
  if (!tensors_.empty()) {
    const ArrayView memory = out_.add(kTensors, DType::kUInt8, Shape{static_cast<std::int64_t>(tensor_bytes_)});
    for (std::size_t i = 0; i < tensors_.size(); ++i) copy_dense(memory.data + offsets_[i], tensors_[i]);
  }
  const ArrayView skeleton = out_.add(kSkeleton, DType::kUInt8, Shape{static_cast<std::int64_t>(skeleton_.size())});
  std::memcpy(skeleton.data, skeleton_.data(), skeleton_.size());
}

MessageReader::MessageReader(const Batch& batch) : batch_(batch) {
  const BatchArray skeleton = batch.at(kSkeleton);
  left_ = {skeleton.data, skeleton.nbytes()};
}

std::span<const std::byte> MessageReader::bytes(std::size_t count) {
  if (count > left_.size())
    throw DataError(c10::str("a batch ends ", count - left_.size(),
                             " bytes early: members() must name the same members in every call."));
  const std::span<const std::byte> result = left_.first(count);
  left_ = left_.subspan(count);
  return result;
}

at::Tensor MessageReader::tensor() {
  const auto record = value<Record>();
  if (!record.defined) return {};
  std::vector<std::int64_t> sizes(record.ndim), strides(record.ndim);
  for (auto* dims : {&sizes, &strides}) {
    const std::span<const std::byte> from = bytes(record.ndim * sizeof(std::int64_t));
    if (!from.empty()) std::memcpy(dims->data(), from.data(), from.size());
  }
  const BatchArray array = batch_.at(record.array.data());
  const auto type = static_cast<at::ScalarType>(record.dtype);
  at::Tensor result = at::from_blob(
      array.data + record.offset, sizes, strides, [owner = array.owner](void*) mutable { owner.reset(); }, type);
  return record.requires_grad ? result.requires_grad_() : result;
}

}  // namespace infeed::torch
