#pragma once
/// A folder that appears whole or not at all.

#include <filesystem>

#include "base/descriptor.h"

namespace infeed::saving {

/// A hidden folder beside `target` that takes its place at commit(), in one step where the system can exchange two
/// names. Locked while it is written: what a killed writer left is not, and the next one removes it. Throws FileError.
///
///   run/last                        the checkpoint
///   run/.last.<number>.tmp          being written; after the exchange, the old one on its way out
///   run/.last.old                   the old one, where names cannot be exchanged: for the moment between two renames
class AtomicFolder {
 public:
  explicit AtomicFolder(std::filesystem::path target);
  ~AtomicFolder();
  AtomicFolder(const AtomicFolder&) = delete;
  AtomicFolder& operator=(const AtomicFolder&) = delete;

  [[nodiscard]] const std::filesystem::path& path() const noexcept { return fresh_; }
  /// The files in it are durable already.
  void commit();

 private:
  void remove_leftovers() const;

  std::filesystem::path target_, fresh_;
  Descriptor lock_;
};

/// `target`, or the old one that a crash left under its other name.
[[nodiscard]] std::filesystem::path present_folder(const std::filesystem::path& target);

/// `fresh` becomes `target`. False for `exchange`: by two renames.
void replace_folder(const std::filesystem::path& fresh, const std::filesystem::path& target, bool exchange = true);

}  // namespace infeed::saving
