#pragma once
/// The owner words of runs and extents: batch number and holder in one 64-bit word, so that one compare-and-swap names
/// both.
///
///   63                                  16 15             0
///  | seq, 48 bits                         | who            |
///
/// Since seq is never used twice, a word never comes back: a compare-and-swap with an old seq fails for ever (no ABA).

#include <cstdint>

namespace infeed {

inline constexpr std::uint64_t kMaxSeq = (std::uint64_t{1} << 48) - 1;

/// Who holds a run: nobody, claimant who - 1, nobody but promised to claimant (who - kAssigned - 1), or cancelled.
namespace who {
inline constexpr std::uint64_t kFree = 0;
inline constexpr std::uint64_t kAssigned = 0x4000;
inline constexpr std::uint64_t kCancelled = 0x8000;
}  // namespace who

constexpr std::uint64_t owner_word(std::uint64_t seq, std::uint64_t holder) { return seq << 16 | holder; }
constexpr std::uint64_t free_word(std::uint64_t seq) { return owner_word(seq, who::kFree); }
constexpr std::uint64_t held_word(std::uint64_t seq, int claimant) {
  return owner_word(seq, static_cast<std::uint64_t>(claimant) + 1);
}
constexpr std::uint64_t cancelled_word(std::uint64_t seq) { return owner_word(seq, who::kCancelled); }
/// Not started, and only `claimant` may start it; a negative claimant: anyone.
constexpr std::uint64_t offered_word(std::uint64_t seq, int claimant) {
  return claimant < 0 ? free_word(seq) : owner_word(seq, who::kAssigned + static_cast<std::uint64_t>(claimant) + 1);
}
constexpr bool is_unstarted(std::uint64_t word, std::uint64_t seq) {
  const std::uint64_t holder = word & 0xffff;
  return word >> 16 == seq && (holder == who::kFree || (holder > who::kAssigned && holder < who::kCancelled));
}

/// Owner words of extents.
inline constexpr std::uint64_t kExtentFree = 0;
inline constexpr std::uint64_t kExtentOfConsumer = 1;  ///< acquired for an armed slot, or lent to the user
/// A claimant bound it to the batch it fills.
constexpr std::uint64_t bound_word(std::uint64_t seq) { return owner_word(seq, 2); }

}  // namespace infeed
