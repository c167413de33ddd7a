// What an interrupted conversion has safely on disk: the checksums of the finished extents, in order,
// appended only after the data they stand for was synced.
//
//   0   8   "tierdPRG"
//   8   8   XXH3-64 of the planned manifest's text, which holds the source's fingerprint (little endian)
//   16  16n one record an extent: its checksum, and the XXH3-64 of (plan, index, checksum), which tells a
//   whole
//           record from a torn one
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/base/disk.h"
#include "core/base/result.h"

namespace tierd {

class ProgressFile {
 public:
  // Opens or makes it. Records of another plan are dropped.
  static Result<ProgressFile> open(Disk& disk, const std::string& path, uint64_t plan);

  // Checksums of the extents 0, 1, … that an earlier run finished.
  const std::vector<uint64_t>& finished() const { return finished_; }
  // Appends records and syncs them.
  Status append(Disk& disk, std::span<const uint64_t> checksums);
  // Forgets all records.
  Status clear(Disk& disk);

 private:
  ProgressFile(OpenFile file, uint64_t plan) : file_(std::move(file)), plan_(plan) {}
  Status load();

  OpenFile file_;
  uint64_t plan_;
  std::vector<uint64_t> finished_;
};

}  // namespace tierd
