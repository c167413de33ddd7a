// A conversion that is killed, loses power or runs out of disk space at any step leaves no store or a whole
// one. The next run ends with the same bytes as an undisturbed one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <vector>

#include "core/store/progress_file.h"
#include "core/store/store.h"
#include "core/store/store_writer.h"
#include "tests/base/temp_folder.h"
#include "tests/formats/files.h"
#include "tests/store/interrupted_disk.h"
#include "tests/store/memory_source.h"

namespace tierd {
namespace {

using testing::HasSubstr;

const WriteOptions kOptions = {.neuron_bytes = 4096, .quiet = true};

MemorySource a_source(uint64_t seed = 1) {
  return MemorySource(small_llama(), Encoding::q8_0, seed);
}

// A disk that loses, at a power cut, every write since the last sync of its file.
class PowerCutDisk : public InterruptedDisk {
 public:
  Status write(const OpenFile& file, uint64_t offset, std::span<const std::byte> bytes) override {
    TIERD_ASSIGN(const uint64_t size, file.size());
    Change change{file.path(), offset, std::vector<std::byte>(bytes.size())};
    if (offset < size) {
      const uint64_t old = std::min<uint64_t>(bytes.size(), size - offset);
      TIERD_TRY(file.read(offset, std::span(change.before).first(old)));
    }
    unsynced_.push_back(std::move(change));
    return InterruptedDisk::write(file, offset, bytes);
  }
  Status sync(const OpenFile& file) override {
    TIERD_TRY(InterruptedDisk::sync(file));
    std::erase_if(unsynced_, [&](const Change& change) { return change.path == file.path(); });
    return {};
  }
  void cut_power() {
    for (auto change = unsynced_.rbegin(); change != unsynced_.rend(); ++change) {
      std::fstream file(change->path, std::ios::binary | std::ios::in | std::ios::out);
      file.seekp(static_cast<std::streamoff>(change->offset));
      file.write(reinterpret_cast<const char*>(change->before.data()),
                 static_cast<std::streamsize>(change->before.size()));
    }
  }

 private:
  struct Change {
    std::string path;
    uint64_t offset;
    std::vector<std::byte> before;
  };
  std::vector<Change> unsynced_;
};

class Interrupted : public testing::Test {
 protected:
  void SetUp() override {
    InterruptedDisk counting;
    ASSERT_TRUE(write_store_on(counting, source_, folder_ + "/whole", kOptions, kSmallSteps).ok());
    steps_ = counting.steps;
    all_bytes_ = counting.data_written;
    data_ = file_text(folder_ + "/whole/weights.bin");
    manifest_ = file_text(folder_ + "/whole/manifest.json");
    checksums_ = file_text(folder_ + "/whole/checksums.bin");
    ASSERT_GT(steps_, 20);
  }

  std::string fresh_store() {
    std::filesystem::remove_all(folder_ + "/store");
    std::filesystem::remove_all(folder_ + "/store.partial");
    return folder_ + "/store";
  }
  void expect_none_or_whole(const std::string& store) {
    if (!std::filesystem::exists(store)) return;
    const auto opened = Store::open(store);
    ASSERT_TRUE(opened.ok()) << opened.error().line();
    EXPECT_TRUE(opened->verify_all(true).ok());
  }
  // Completes the interrupted store and compares it. Returns the bytes of weights written for that.
  uint64_t expect_resumes(const std::string& store) {
    InterruptedDisk disk;
    const Status written = write_store_on(disk, source_, store, kOptions, kSmallSteps);
    EXPECT_TRUE(written.ok()) << written.error().line();
    EXPECT_TRUE(file_text(store + "/weights.bin") == data_);
    EXPECT_TRUE(file_text(store + "/manifest.json") == manifest_);
    EXPECT_TRUE(file_text(store + "/checksums.bin") == checksums_);
    EXPECT_FALSE(std::filesystem::exists(store + "/progress"));
    return disk.data_written;
  }

  TempFolder temp_;
  std::string folder_ = temp_.path();
  MemorySource source_ = a_source();
  int steps_ = 0;
  uint64_t all_bytes_ = 0;
  std::string data_;
  std::string manifest_;
  std::string checksums_;
};

TEST_F(Interrupted, KilledAtEveryStep) {
  uint64_t least = all_bytes_;
  for (int step = 0; step < steps_; ++step) {
    SCOPED_TRACE(step);
    const std::string store = fresh_store();
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      KillingDisk disk;
      disk.interrupt_at = step;
      const Status written = write_store_on(disk, source_, store, kOptions, kSmallSteps);
      _exit(written.ok() ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    expect_none_or_whole(store);
    least = std::min(least, expect_resumes(store));
  }
  EXPECT_EQ(least, 0u);  // killed after the last checkpoint: nothing is converted again
}

TEST_F(Interrupted, PowerCutAtEveryStep) {
  for (int step = 0; step < steps_; ++step) {
    SCOPED_TRACE(step);
    const std::string store = fresh_store();
    PowerCutDisk disk;
    disk.interrupt_at = step;
    EXPECT_FALSE(write_store_on(disk, source_, store, kOptions, kSmallSteps).ok());
    disk.cut_power();
    expect_none_or_whole(store);
    expect_resumes(store);
  }
}

TEST_F(Interrupted, FullDiskIsNamed) {
  for (int step = 0; step < steps_; ++step) {
    const std::string store = fresh_store();
    InterruptedDisk disk;
    disk.interrupt_at = step;
    const Status written = write_store_on(disk, source_, store, kOptions, kSmallSteps);
    EXPECT_EQ(written.code(), Code::no_space);
    EXPECT_THAT(written.error().line(), HasSubstr(folder_));
  }
}

TEST_F(Interrupted, ResumesOnlyItsOwnSource) {
  const std::string store = fresh_store();
  InterruptedDisk disk;
  disk.interrupt_at = steps_ * 2 / 3;
  const MemorySource other = a_source(2);
  ASSERT_FALSE(write_store_on(disk, other, store, kOptions, kSmallSteps).ok());
  ASSERT_GT(disk.data_written, kSmallSteps.checkpoint_bytes);
  EXPECT_EQ(expect_resumes(store), all_bytes_);
}

TEST_F(Interrupted, ResumesOnlyItsOwnPlan) {
  const std::string store = fresh_store();
  InterruptedDisk disk;
  disk.interrupt_at = steps_ * 2 / 3;
  WriteOptions other = kOptions;
  other.neuron_bytes = 8192;
  ASSERT_FALSE(write_store_on(disk, source_, store, other, kSmallSteps).ok());
  EXPECT_EQ(expect_resumes(store), all_bytes_);
}

TEST_F(Interrupted, DamagedCheckpointStartsOver) {
  const std::string store = fresh_store();
  InterruptedDisk disk;
  disk.interrupt_at = steps_ * 2 / 3;
  ASSERT_FALSE(write_store_on(disk, source_, store, kOptions, kSmallSteps).ok());
  const auto records = (std::filesystem::file_size(store + ".partial/progress") - 16) / 16;
  ASSERT_GT(records, 0u);
  const auto manifest = read_manifest(folder_ + "/whole");
  flip_bit(store + ".partial/weights.bin", manifest->extents[records - 1].offset + 5, 3);
  EXPECT_EQ(expect_resumes(store), all_bytes_);
}

TEST_F(Interrupted, TornRecordIsDropped) {
  const std::string store = fresh_store();
  InterruptedDisk disk;
  disk.interrupt_at = steps_ * 2 / 3;
  ASSERT_FALSE(write_store_on(disk, source_, store, kOptions, kSmallSteps).ok());
  const std::string progress = store + ".partial/progress";
  std::filesystem::resize_file(progress, std::filesystem::file_size(progress) - 5);
  const uint64_t again = expect_resumes(store);
  EXPECT_GT(again, 0u);
  EXPECT_LT(again, all_bytes_);
}

// An intruder made the progress file 900 GB long. Only its records count.
TEST_F(Interrupted, TheLengthOfItsFileIsNotBelieved) {
  const std::string store = fresh_store();
  InterruptedDisk disk;
  disk.interrupt_at = steps_ * 2 / 3;
  ASSERT_FALSE(write_store_on(disk, source_, store, kOptions, kSmallSteps).ok());
  std::filesystem::resize_file(store + ".partial/progress", 900'000'000'000);
  EXPECT_LT(expect_resumes(store), all_bytes_);
}

TEST_F(Interrupted, RecordsBehindABadOneAreForgotten) {
  Disk disk;
  const std::string path = folder_ + "/progress";
  const std::vector<uint64_t> three = {1, 2, 3};
  ASSERT_TRUE(ProgressFile::open(disk, path, 7)->append(disk, three).ok());
  flip_bit(path, 16 + 16 + 3, 0);
  auto progress = ProgressFile::open(disk, path, 7);
  EXPECT_THAT(progress->finished(), testing::ElementsAre(1));
  const std::vector<uint64_t> next = {42};
  ASSERT_TRUE(progress->append(disk, next).ok());
  EXPECT_THAT(ProgressFile::open(disk, path, 7)->finished(), testing::ElementsAre(1, 42));
}

TEST_F(Interrupted, SourceThatChangesMeanwhileIsNoticed) {
  class Changing : public MemorySource {
   public:
    using MemorySource::MemorySource;
    std::string fingerprint() const override { return std::to_string(calls_++); }

   private:
    mutable int calls_ = 0;
  };
  const Changing source(small_llama(), Encoding::f16);
  const std::string store = fresh_store();
  const Status written = write_store(source, store, kOptions);
  EXPECT_THAT(written.error().line(), HasSubstr("changed while it was converted"));
  EXPECT_FALSE(std::filesystem::exists(store));
}

}  // namespace
}  // namespace tierd
