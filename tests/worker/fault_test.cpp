#include "worker/fault.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "infeed/base/error.h"

namespace infeed {
namespace {

template <typename E>
Fault fault_of(E error) {
  return capture_fault(std::make_exception_ptr(error));
}

template <typename E>
void expect_same_type_after_crossing(const E& error) {
  const Fault fault = fault_of(error);
  EXPECT_EQ(fault.text, error.what());
  try {
    throw_fault(fault.code, "batch 3: " + fault.text);
  } catch (const E& again) {
    EXPECT_EQ(std::string(again.what()), std::string("batch 3: ") + error.what());
  }
}

TEST(Fault, KeepsTheTypesOfInfeed) {
  expect_same_type_after_crossing(Error("a"));
  expect_same_type_after_crossing(ConfigError("a"));
  expect_same_type_after_crossing(IndexError("a"));
  expect_same_type_after_crossing(DataError("a"));
  expect_same_type_after_crossing(WorkerError("a"));
  expect_same_type_after_crossing(TimeoutError("a"));
  expect_same_type_after_crossing(MemoryError("a"));
  expect_same_type_after_crossing(StateError("a"));
  expect_same_type_after_crossing(DeviceError("a"));
}

TEST(Fault, KeepsWhyAnImageCannotBeDecoded) {
  const Fault fault = fault_of(DecodeError(DecodeFault::kTruncated, "ends early"));
  try {
    throw_fault(fault.code, fault.text);
    FAIL();
  } catch (const DecodeError& error) {
    EXPECT_EQ(error.fault(), DecodeFault::kTruncated);
  }
}

TEST(Fault, MakesBadAllocAMemoryError) {
  const Fault fault = fault_of(std::bad_alloc());
  EXPECT_THROW(throw_fault(fault.code, fault.text), MemoryError);
}

TEST(Fault, NamesForeignTypes) {
  const Fault fault = fault_of(std::out_of_range("no such key"));
  EXPECT_EQ(fault.text, "std::out_of_range: no such key");
  EXPECT_THROW(throw_fault(fault.code, fault.text), DataError);
}

TEST(Fault, NamesWhatIsNoException) { EXPECT_EQ(fault_of(42).text, "int that is not derived from std::exception"); }

TEST(Fault, SaysNothingOfNothing) { EXPECT_EQ(capture_fault(nullptr).code, 0); }

}  // namespace
}  // namespace infeed
