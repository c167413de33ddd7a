// The cache of models that huggingface_hub, transformers and llama.cpp share: each finds the downloads of the
// others. The layout is huggingface_hub's:
//
//   FOLDER/models--OWNER--REPO/blobs/HASH                  the bytes of a file, once for all commits
//                             /blobs/HASH.incomplete       the bytes downloaded so far
//                             /snapshots/COMMIT/NAME       a relative link to a blob
//                             /refs/main                   the commit that `main` was last seen at
//         /.locks/models--OWNER--REPO/HASH.lock            flock of the process that downloads this blob
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/base/disk.h"
#include "core/base/result.h"

namespace tierd {

// Returns the folder that the environment names, which need not exist. Error: not_found where no variable
// names a home.
Result<std::string> hub_cache_folder();

// One repository in the cache. Const look-ups create no files. Each error names the path.
class HubCache {
 public:
  // `repository`: OWNER/REPO, already validated.
  HubCache(std::string folder, const std::string& repository);

  const std::string& folder() const { return folder_; }
  std::string blob(const std::string& hash) const;
  std::string incomplete(const std::string& hash) const;
  std::string file(const std::string& commit, const std::string& name) const;
  std::string snapshot(const std::string& commit) const;
  bool has_blob(const std::string& hash) const;
  // Returns the bytes of an interrupted download; 0 where there is none.
  uint64_t incomplete_bytes(const std::string& hash) const;

  // Returns the commits that have a snapshot: main's first, then the newest.
  std::vector<std::string> commits() const;
  // Returns the commit of refs/main, if the file exists.
  std::optional<std::string> main() const;
  // Returns the names of a snapshot's complete files.
  std::vector<std::string> files(const std::string& commit) const;

  // Creates the folders for blobs and locks.
  Status prepare() const;
  // Waits until no other process downloads this blob, and prints one line about that unless `quiet`. Closing
  // the returned file releases the lock. The lock file stays, as huggingface_hub leaves it.
  Result<OpenFile> lock(const std::string& hash, bool quiet) const;
  // Links an existing blob into a snapshot.
  Status link(const std::string& commit, const std::string& name, const std::string& hash) const;
  Status set_main(const std::string& commit) const;

 private:
  std::string folder_;
  std::string name_;  // models--OWNER--REPO
  std::string root_;  // folder_/name_
};

}  // namespace tierd
