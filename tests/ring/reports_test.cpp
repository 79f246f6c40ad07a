#include <functional>
#include <string>

#include "ring/rig.h"

namespace infeed {
namespace {

class ReportsTest : public RingRig {
 protected:
  /// A batch of `rows` whose first run reports through `tell`.
  SlotResult batch(int rows, const std::function<void(const Claim&)>& tell) {
    const int slot = arm(rows);
    const auto claim = ring.claim(1);
    tell(*claim);
    ring.publish(*claim, -1);
    fill();
    auto result = ring.take(slot);
    ring.release_extent(result.extent);
    return result;
  }
  RingBytes bytes{arena.control(), ring.config()};
};

TEST_F(ReportsTest, ArriveWithTheBatch) {
  const auto result =
      batch(4, [&](const Claim& c) { ring.add_report(c, RowFault::kSkipped, 0, 1000, 3, "cannot read a.jpg"); });
  ASSERT_EQ(result.reports.size(), 1u);
  const RowReport& report = result.reports[0];
  EXPECT_EQ(report.fault, RowFault::kSkipped);
  EXPECT_EQ(report.row, 0);
  EXPECT_EQ(report.index, 1000);
  EXPECT_EQ(report.error_code, 3);
  EXPECT_EQ(report.claimant, 1);
  EXPECT_EQ(report.text, "cannot read a.jpg");
}

TEST_F(ReportsTest, DoNotReachTheNextBatchOfTheSlot) {
  batch(4, [&](const Claim& c) { ring.add_report(c, RowFault::kRaised, 0, 0, 1, "x"); });
  EXPECT_TRUE(batch(4, [](const Claim&) {}).reports.empty());
}

TEST_F(ReportsTest, CutLongTexts) {
  const std::string text(1000, 'x');
  const auto result = batch(1, [&](const Claim& c) { ring.add_report(c, RowFault::kRaised, -1, 0, 1, text); });
  EXPECT_EQ(result.reports.at(0).text, text.substr(0, 400));
}

TEST_F(ReportsTest, CountsThoseThatFoundNoRoom) {
  const auto result = batch(1, [&](const Claim& c) {
    for (int i = 0; i < 300; ++i) ring.add_report(c, RowFault::kSkipped, 0, i, 1, "x");
  });
  EXPECT_EQ(result.reports.size(), 256u);
  EXPECT_EQ(result.reports_lost, 44);
}

TEST_F(ReportsTest, AForgedRecordIsCountedAsLost) {
  const auto result = batch(1, [&](const Claim& c) {
    ring.add_report(c, RowFault::kSkipped, 0, 0, 1, "x");
    bytes.report(c.slot, 0).text_length = 1 << 30;
  });
  EXPECT_TRUE(result.reports.empty());
  EXPECT_EQ(result.reports_lost, 1);
}

TEST_F(ReportsTest, AForgedCountStaysInBounds) {
  const auto result = batch(1, [&](const Claim& c) { bytes.head(c.slot).num_reports = ~std::uint32_t{0}; });
  EXPECT_TRUE(result.reports.empty());
  EXPECT_GT(result.reports_lost, 0);
}

TEST_F(ReportsTest, StatisticsAddUpPerClaimant) {
  ring.add_stats(2, {.pid = 42, .rows = 5, .runs = 1, .decode_ns = 100});
  ring.add_stats(2, {.pid = 43, .rows = 7, .wait_ns = 9});
  ring.note_sample(2, 11, 1234);
  const ClaimantStats stats = ring.stats(2);
  EXPECT_EQ(stats.pid, 43);
  EXPECT_EQ(stats.rows, 12u);
  EXPECT_EQ(stats.runs, 1u);
  EXPECT_EQ(stats.decode_ns, 100u);
  EXPECT_EQ(stats.wait_ns, 9u);
  EXPECT_EQ(stats.batch, 11u);
  EXPECT_EQ(stats.index, 1234);
  EXPECT_EQ(ring.stats(1).rows, 0u);
}

TEST_F(ReportsTest, AFailedStartLeavesItsText) {
  EXPECT_EQ(ring.start_failure(3), "");
  ring.fail_start(3, 9, "no such dataset");
  EXPECT_EQ(ring.start_failure(3), "no such dataset");
  EXPECT_EQ(ring.start_error_code(3), 9);
  EXPECT_EQ(ring.stats(3).init_error, 9u);
  ring.fail_start(3, 9, std::string(5000, 'y'));
  EXPECT_LT(ring.start_failure(3).size(), 1024u);
}

}  // namespace
}  // namespace infeed
