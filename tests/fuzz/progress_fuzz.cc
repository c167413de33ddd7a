// The progress file of an interrupted conversion. Seeds match the plan.
#include "core/store/progress_file.h"

#include "core/base/check.h"
#include "tests/fuzz/input_folder.h"
#include "tests/fuzz/promises.h"
#include "tests/fuzz/target.h"

namespace tierd {

void fuzz(std::string_view input) {
  constexpr uint64_t kPlan = 7;
  static const InputFolder folder;
  const std::string path = folder.write("progress", input);
  Disk disk;
  auto progress = ProgressFile::open(disk, path, kPlan);
  if (!progress.ok()) return expect_one_line(progress.error(), path);
  // The next record is appended after the accepted ones.
  std::vector<uint64_t> finished = progress->finished();
  const uint64_t next = 42;
  TIERD_CHECK(progress->append(disk, {&next, 1}).ok());
  finished.push_back(next);
  const auto again = ProgressFile::open(disk, path, kPlan);
  TIERD_CHECK_MSG(again.ok(), again.error().line());
  TIERD_CHECK(again->finished() == finished);
}

}  // namespace tierd
