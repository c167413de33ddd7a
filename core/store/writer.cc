#include "core/store/writer.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <system_error>
#include <thread>
#include <vector>

#include "core/base/checksum.h"
#include "core/base/log.h"
#include "core/base/progress.h"
#include "core/base/units.h"
#include "core/store/compressed_packer.h"
#include "core/store/compressed_plan.h"
#include "core/store/encoding_error.h"
#include "core/store/manifest_json.h"
#include "core/store/planner.h"
#include "core/store/progress_file.h"
#include "core/store/store_writer.h"
#include "core/system/memory_limits.h"

namespace tierd {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kProgressFile = "progress";
// The memory of a conversion, in batches: the batch being written, the batch being packed, and columns
// decoded to floats by its workers.
constexpr uint64_t kBatchesInMemory = 16;

// Consecutive extents, packed by several threads.
class Batch {
 public:
  Batch(const CompressedPacker& packer, const std::vector<Extent>& extents, uint32_t first,
        uint64_t most_bytes)
      : packer_(packer), extents_(extents), first_(first), count_(1) {
    while (first_ + count_ < extents.size() && end_of(first_ + count_) - offset() <= most_bytes) ++count_;
    for (uint32_t extent = first_; extent < next(); extent += runs_.back().count)
      runs_.push_back({extent, std::min(packer.run_of(extent), next() - extent), {}});
    bytes_ = std::make_unique_for_overwrite<std::byte[]>(size());
    checksums_.resize(count_);
    const auto most = static_cast<uint32_t>(runs_.size());
    const uint32_t threads = std::min(most, std::max(1u, std::thread::hardware_concurrency()));
    for (uint32_t i = 0; i < threads; ++i) workers_.emplace_back([this] { work(); });
  }

  // Waits until the batch is packed.
  Status wait() {
    workers_.clear();
    for (const Run& run : runs_) TIERD_TRY(run.packed);
    return {};
  }
  uint32_t next() const { return first_ + count_; }
  uint64_t offset() const { return extents_[first_].offset; }
  uint64_t size() const { return end_of(first_ + count_ - 1) - offset(); }
  // Valid after wait().
  std::span<const std::byte> bytes() const { return {bytes_.get(), size()}; }
  void append_checksums(std::vector<uint64_t>& out) const {
    out.insert(out.end(), checksums_.begin(), checksums_.end());
  }

 private:
  struct Run {
    uint32_t first;
    uint32_t count;
    Status packed;
  };
  uint64_t end_of(uint32_t extent) const { return extents_[extent].offset + extents_[extent].bytes; }
  void work() {
    for (uint32_t i = taken_++; i < runs_.size(); i = taken_++) {
      Run& run = runs_[i];
      const uint64_t begin = extents_[run.first].offset;
      run.packed =
          packer_.pack(run.first, run.count,
                       {bytes_.get() + (begin - offset()), end_of(run.first + run.count - 1) - begin},
                       std::span(checksums_).subspan(run.first - first_, run.count));
      const uint32_t after = run.first + run.count;
      if (after == next()) continue;
      const uint64_t end = end_of(after - 1);
      std::fill_n(bytes_.get() + (end - offset()), extents_[after].offset - end, std::byte{0});
    }
  }

  const CompressedPacker& packer_;
  const std::vector<Extent>& extents_;
  uint32_t first_;
  uint32_t count_;
  std::unique_ptr<std::byte[]> bytes_;
  std::vector<Run> runs_;
  std::vector<uint64_t> checksums_;
  std::atomic<uint32_t> taken_ = 0;
  std::vector<std::jthread>
      workers_;  // last, so that workers are joined before the other members are destroyed
};

// Reduces the batch size if little memory is left (kBatchesInMemory). Error: no_space.
Result<WriterLimits> within_memory(WriterLimits limits, const Manifest& plan, const std::string& directory) {
  const MemoryLimit left = memory_left();
  const uint64_t tables = plan.extents.size() * kBytesOfExtent;
  uint64_t largest = 0;
  for (const Extent& extent : plan.extents) largest = std::max(largest, extent.bytes);
  const uint64_t least = tables + kBatchesInMemory * largest;
  if (left.left_bytes < least) {
    return Error{Code::no_space, directory,
                 fmt::format("converting takes at least {} of memory, but {} leaves {}",
                             format_bytes(static_cast<double>(least)), left.source,
                             format_bytes(static_cast<double>(left.left_bytes)))};
  }
  limits.batch_bytes = std::min(limits.batch_bytes, (left.left_bytes - tables) / kBatchesInMemory);
  return limits;
}

class StoreWriter {
 public:
  StoreWriter(Disk& disk, const TensorSource& source, std::string directory, Manifest plan,
              const WriterLimits& limits, const WriteOptions& options)
      : disk_(disk),
        source_(source),
        directory_(std::move(directory)),
        partial_(directory_ + ".partial"),
        plan_(std::move(plan)),
        plan_text_(plan_text(plan_)),
        limits_(limits),
        codec_(options.codec.get()),
        quiet_(options.quiet),
        refuses_vain_compression_(options.refuse_vain_compression),
        tokenizer_(options.tokenizer) {}

  Status run() {
    for (;;) {
      TIERD_ASSIGN(const bool whole, holds_store(directory_, plan_, plan_text_));
      if (whole) return {};
      TIERD_ASSIGN(const bool locked, lock());
      if (locked) break;
    }
    // Another run may have finished between the check and the lock.
    TIERD_ASSIGN(const bool whole, holds_store(directory_, plan_, plan_text_));
    if (whole) return drop_partial();
    if (!manifest_is_written()) {
      const Status written = write_content();
      if (written.code() == Code::corrupt) (void)drop_unfinished();
      TIERD_TRY(written);
    }
    return finish();
  }

 private:
  std::string path_of(std::string_view file) const { return fmt::format("{}/{}", partial_, file); }

  // Returns false if the folder was removed or replaced because another run finished it.
  Result<bool> lock() {
    TIERD_TRY(disk_.make_directory(partial_));
    auto opened = open_directory(partial_, false);
    if (opened.code() == Code::not_found) return false;
    if (opened.ok()) TIERD_TRY(check_own(*opened));
    TIERD_ASSIGN(folder_, std::move(opened));
    if (flock(folder_.descriptor(), LOCK_EX | LOCK_NB) != 0) {
      if (errno == EWOULDBLOCK) return Error{Code::busy, partial_, "another process is writing this store"};
      if (!has_no_locks(errno)) return disk_error(partial_, "locking it");
      spdlog::warn("{}: cannot be locked ({}); make sure that no other process writes this store now",
                   partial_, std::generic_category().message(errno));
    }
    struct stat ours {};
    struct stat there {};
    return fstat(folder_.descriptor(), &ours) == 0 && stat(partial_.c_str(), &there) == 0 &&
           ours.st_ino == there.st_ino && ours.st_dev == there.st_dev;
  }

  // Refuses another user's folder, which that user could modify at any time, or lock for ever.
  Status check_own(const OpenFile& folder) const {
    struct stat found {};
    if (fstat(folder.descriptor(), &found) != 0) return disk_error(partial_, "looking at it");
    if (found.st_uid == geteuid()) return {};
    return Error{Code::invalid_argument, partial_,
                 "belongs to another user; remove it, or choose another folder"};
  }

  Status drop_partial() {
    std::error_code ignored;  // the folder is empty; if it remains, it does no harm
    fs::remove(partial_, ignored);
    return {};
  }

  // Removes the data of a source that cannot be stored, because no later run can use it.
  Status drop_unfinished() {
    data_ = {};
    for (const std::string_view file : {kDataFile, kProgressFile}) TIERD_TRY(disk_.remove(path_of(file)));
    return drop_partial();
  }

  // Returns true after an interruption between manifest and rename.
  bool manifest_is_written() const {
    const auto found = read_manifest(partial_);
    return found.ok() && plan_text(*found) == plan_text_;
  }

  Status write_content() {
    if (plan_.compression != Compression::none) {
      TIERD_ASSIGN(plan_, compressed_plan(source_, std::move(plan_), quiet_, codec_));
      if (refuses_vain_compression_ && !compresses(plan_)) {
        TIERD_TRY(drop_unfinished());
        return compresses_nothing(plan_.compression_name(), source_.path(), tokenizer_, plan_.config);
      }
    }
    TIERD_TRY(write_extents());
    return write_manifest();
  }

  Status write_extents() {
    TIERD_ASSIGN(limits_, within_memory(limits_, plan_, directory_));
    TIERD_TRY(disk_.remove(path_of(kManifestFile)));  // an older plan's manifest must not validate this data
    TIERD_ASSIGN(progress_, ProgressFile::open(disk_, path_of(kProgressFile), progress_key()));
    TIERD_ASSIGN(data_, disk_.open(path_of(kDataFile), false));
    TIERD_TRY(verify_last_checkpoint());
    TIERD_TRY(disk_.truncate(data_, plan_.data_bytes));
    TIERD_TRY(disk_.reserve(data_, plan_.data_bytes));
    TIERD_TRY(disk_.sync(folder_));

    const auto count = static_cast<uint32_t>(plan_.extents.size());
    auto next = static_cast<uint32_t>(progress_->finished().size());
    const uint64_t done_bytes =
        next == 0 ? 0 : plan_.extents[next - 1].offset + plan_.extents[next - 1].bytes;
    if (next != 0 && !quiet_) {
      say(fmt::format("{}: resuming after {} of {}", partial_, format_bytes(static_cast<double>(done_bytes)),
                      format_bytes(static_cast<double>(plan_.data_bytes))));
    }
    const CompressedPacker packer(source_, plan_, codec_);
    Progress shown("converting", plan_.data_bytes - done_bytes, quiet_);
    const auto start = [&](std::optional<Batch>& slot, uint32_t first) {
      if (first < count) slot.emplace(packer, plan_.extents, first, limits_.batch_bytes);
    };
    std::optional<Batch> slots[2];  // one is written while the other is packed
    start(slots[0], next);
    for (int current = 0; next < count; current = 1 - current) {
      Batch& packed = *slots[current];
      TIERD_TRY(packed.wait());
      next = packed.next();
      start(slots[1 - current], next);
      TIERD_TRY(disk_.write(data_, packed.offset(), packed.bytes()));
      packed.append_checksums(unsynced_);
      unsynced_bytes_ += packed.size();
      if (unsynced_bytes_ >= limits_.checkpoint_bytes || next == count) TIERD_TRY(checkpoint());
      shown.advance(packed.size());
    }
    shown.finish();
    return {};
  }

  // Returns the key by which a run recognizes the progress of an interrupted one: a hash of the plan and of
  // the sizes of compressed neurons, which depend on the version of a codec's library.
  uint64_t progress_key() const {
    std::string text = plan_text_;
    for (const StoredSite* site : std::as_const(plan_).stored()) {
      const auto sizes = std::as_bytes(std::span(site->compressed));
      text.append(reinterpret_cast<const char*>(sizes.data()), sizes.size());
    }
    return checksum(text);
  }

  Status checkpoint() {
    TIERD_TRY(disk_.sync(data_));
    TIERD_TRY(progress_->append(disk_, unsynced_));
    unsynced_.clear();
    unsynced_bytes_ = 0;
    return {};
  }

  // Checks the data synced last by the interrupted run against its checksums; if they differ, starts over.
  Status verify_last_checkpoint() {
    const std::vector<uint64_t>& finished = progress_->finished();
    bool intact = finished.size() <= plan_.extents.size();
    uint64_t looked_at = 0;
    for (size_t i = finished.size(); intact && i-- > 0 && looked_at < limits_.checkpoint_bytes;) {
      const Extent& extent = plan_.extents[i];
      std::vector<std::byte> bytes(extent.bytes);
      intact = data_.read(extent.offset, bytes).ok() && checksum(bytes) == finished[i];
      looked_at += extent.bytes;
    }
    if (intact) return {};
    if (!quiet_) say(fmt::format("{}: does not match its checkpoint; conversion starts again", partial_));
    return progress_->clear(disk_);
  }

  Status write_manifest() {
    if (source_.fingerprint() != plan_.provenance.fingerprint) {
      return Error{Code::corrupt, source_.path(), "changed while it was converted; convert it again"};
    }
    for (size_t i = 0; i < plan_.extents.size(); ++i) plan_.extents[i].checksum = progress_->finished()[i];
    TIERD_TRY(measure_loss());
    TIERD_TRY(write_file(kChecksumFile, checksum_bytes(plan_)));
    TIERD_TRY(write_file(kManifestFile, manifest_text(plan_)));
    return disk_.sync(folder_);
  }

  // Measures the loss of all sites, with several threads. All are measured at the end because a resumed run
  // knows nothing of the values written before the interruption.
  Status measure_loss() {
    std::vector<StoredSite*> lossy;
    uint64_t bytes = 0;
    for (StoredSite* site : plan_.stored()) {
      if (!encoded_anew(source_, *site)) continue;
      lossy.push_back(site);
      bytes += site->tensor_bytes();
    }
    if (lossy.empty()) return {};
    Progress shown("measuring the loss of encoding", bytes, quiet_);
    std::vector<Status> measured(lossy.size());
    std::mutex shows;
    std::atomic<size_t> taken = 0;
    {
      std::vector<std::jthread> workers;
      const size_t threads =
          std::min<size_t>(lossy.size(), std::max(1u, std::thread::hardware_concurrency()));
      for (size_t i = 0; i < threads; ++i) {
        workers.emplace_back([&] {
          for (size_t at = taken++; at < lossy.size(); at = taken++) {
            auto error = encoding_error(source_, *lossy[at]);
            if (error.ok()) lossy[at]->encoding_error = *error;
            measured[at] = error.ok() ? Status() : Status(error.error());
            const std::lock_guard lock(shows);
            shown.advance(lossy[at]->tensor_bytes());
          }
        });
      }
    }
    for (const Status& status : measured) TIERD_TRY(status);
    shown.finish();
    return {};
  }

  Status write_file(std::string_view name, const std::string& content) {
    TIERD_ASSIGN(const OpenFile file, disk_.open(path_of(name), true));
    TIERD_TRY(disk_.write(file, 0, std::as_bytes(std::span(content))));
    return disk_.sync(file);
  }

  Status finish() {
    TIERD_TRY(disk_.remove(path_of(kProgressFile)));
    TIERD_TRY(disk_.sync(folder_));
    TIERD_TRY(disk_.rename(partial_, directory_));
    TIERD_ASSIGN(const OpenFile parent, open_directory(parent_directory(directory_)));
    return disk_.sync(parent);
  }

  Disk& disk_;
  const TensorSource& source_;
  std::string directory_;
  std::string partial_;
  Manifest plan_;
  std::string plan_text_;
  WriterLimits limits_;
  const NeuronCodec* codec_;  // or nullptr
  bool quiet_;
  bool refuses_vain_compression_;
  std::string tokenizer_;

  OpenFile folder_;  // holds the lock
  OpenFile data_;
  std::optional<ProgressFile> progress_;
  std::vector<uint64_t> unsynced_;  // checksums of extents written since the last checkpoint
  uint64_t unsynced_bytes_ = 0;
};

}  // namespace

Result<bool> holds_store(const std::string& directory, const Manifest& plan, const std::string& plan_text) {
  std::error_code failed;
  const fs::file_status status = fs::status(directory, failed);
  if (status.type() == fs::file_type::not_found) return false;
  const auto refuse = [&](std::string detail) {
    return Error{Code::invalid_argument, directory, std::move(detail)};
  };
  if (failed) return Error{Code::io_error, directory, failed.message()};
  if (!fs::is_directory(status)) return refuse("is not a folder");
  if (fs::is_empty(directory, failed)) return false;
  if (failed) return Error{Code::io_error, directory, failed.message()};
  const auto found = read_manifest(directory);
  if (found.code() == Code::not_found)
    return refuse("is not empty and is not a store; choose another folder");
  if (!found.ok()) {
    return refuse(fmt::format("is a damaged store ({}); remove it to convert again", found.error().line()));
  }
  if (tierd::plan_text(*found) == plan_text) return true;
  if (found->provenance.fingerprint != plan.provenance.fingerprint) {
    return refuse(fmt::format(
        "is a store of {}, or of an earlier version of the model's files; remove it or choose another folder",
        found->provenance.source));
  }
  return refuse("is a store of this model with other settings; remove it or choose another folder");
}

Status write_store_on(Disk& disk, const TensorSource& source, const std::string& directory,
                      const WriteOptions& options, const WriterLimits& limits) {
  TIERD_ASSIGN(Manifest plan, plan_store(source, options));
  std::string target = directory;
  while (target.size() > 1 && target.back() == '/') target.pop_back();
  return StoreWriter(disk, source, std::move(target), std::move(plan), limits, options).run();
}

Status write_store(const TensorSource& source, const std::string& directory, const WriteOptions& options) {
  Disk disk;
  return write_store_on(disk, source, directory, options, {});
}

}  // namespace tierd
