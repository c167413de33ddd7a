#include "core/store/progress_file.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "core/base/checksum.h"

namespace tierd {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr char kProgressMagic[8] = {'t', 'i', 'e', 'r', 'd', 'P', 'R', 'G'};
constexpr uint64_t kHeaderBytes = 16;
constexpr uint64_t kRecordBytes = 16;
constexpr uint64_t kRecordsAtOnce = 4096;

std::array<std::byte, kHeaderBytes> header_of(uint64_t plan) {
  std::array<std::byte, kHeaderBytes> header;
  std::memcpy(header.data(), kProgressMagic, sizeof kProgressMagic);
  std::memcpy(header.data() + sizeof kProgressMagic, &plan, sizeof plan);
  return header;
}

uint64_t proof_of(uint64_t plan, uint64_t index, uint64_t sum) {
  const std::array<uint64_t, 3> words = {plan, index, sum};
  return checksum(std::as_bytes(std::span(words)));
}

}  // namespace

Result<ProgressFile> ProgressFile::open(Disk& disk, const std::string& path, uint64_t plan) {
  TIERD_ASSIGN(OpenFile file, disk.open(path, false));
  ProgressFile progress(std::move(file), plan);
  TIERD_TRY(progress.load());
  if (progress.finished_.empty()) TIERD_TRY(progress.clear(disk));
  // Anything behind the last valid record would count as records once append() reached its position.
  const uint64_t end = kHeaderBytes + progress.finished_.size() * kRecordBytes;
  TIERD_ASSIGN(const uint64_t bytes, progress.file_.size());
  if (bytes > end) TIERD_TRY(disk.truncate(progress.file_, end));
  return progress;
}

Status ProgressFile::load() {
  TIERD_ASSIGN(const uint64_t bytes, file_.size());
  std::array<std::byte, kHeaderBytes> header;
  if (bytes < kHeaderBytes) return {};
  TIERD_TRY(file_.read(0, header));
  if (header != header_of(plan_)) return {};
  // The file is untrusted, so its length proves nothing: loading stops at the first invalid record.
  std::vector<uint64_t> records;
  for (uint64_t at = kHeaderBytes; at + kRecordBytes <= bytes; at += records.size() * sizeof(uint64_t)) {
    records.resize(2 * std::min(kRecordsAtOnce, (bytes - at) / kRecordBytes));
    TIERD_TRY(file_.read(at, std::as_writable_bytes(std::span(records))));
    for (size_t i = 0; i < records.size(); i += 2) {
      if (records[i + 1] != proof_of(plan_, finished_.size(), records[i])) return {};
      finished_.push_back(records[i]);
    }
  }
  return {};
}

Status ProgressFile::append(Disk& disk, std::span<const uint64_t> checksums) {
  std::vector<uint64_t> records;
  for (size_t i = 0; i < checksums.size(); ++i) {
    records.push_back(checksums[i]);
    records.push_back(proof_of(plan_, finished_.size() + i, checksums[i]));
  }
  TIERD_TRY(
      disk.write(file_, kHeaderBytes + finished_.size() * kRecordBytes, std::as_bytes(std::span(records))));
  TIERD_TRY(disk.sync(file_));
  finished_.insert(finished_.end(), checksums.begin(), checksums.end());
  return {};
}

Status ProgressFile::clear(Disk& disk) {
  finished_.clear();
  TIERD_TRY(disk.truncate(file_, 0));
  TIERD_TRY(disk.write(file_, 0, header_of(plan_)));
  return disk.sync(file_);
}

}  // namespace tierd
