// The finished part of an interrupted conversion: the checksums of the finished extents, in order. A checksum
// is appended only after the data of its extent was synced.
//
//   0   8   "tierdPRG"
//   8   8   XXH3-64 of the planned manifest's text, which holds the source's fingerprint (little endian)
//   16  16n one record an extent: its checksum, and the XXH3-64 of (plan, index, checksum), which
//           distinguishes a whole record from a torn one
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
  // Opens or creates the file. Records of another plan are dropped.
  static Result<ProgressFile> open(Disk& disk, const std::string& path, uint64_t plan);

  // Returns the checksums of the extents 0, 1, … that an earlier run finished.
  const std::vector<uint64_t>& finished() const { return finished_; }
  // Appends records and syncs them.
  Status append(Disk& disk, std::span<const uint64_t> checksums);
  // Removes all records.
  Status clear(Disk& disk);

 private:
  ProgressFile(OpenFile file, uint64_t plan) : file_(std::move(file)), plan_(plan) {}
  Status load();

  OpenFile file_;
  uint64_t plan_;
  std::vector<uint64_t> finished_;
};

}  // namespace tierd
