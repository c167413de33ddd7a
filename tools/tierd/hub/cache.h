// The cache of models that huggingface_hub, transformers and llama.cpp share: what one of them has
// downloaded, the others find. Its layout is huggingface_hub's:
//
//   FOLDER/models--OWNER--REPO/blobs/HASH                  the bytes of a file, once for all commits
//                             /blobs/HASH.incomplete       as far as they have come
//                             /snapshots/COMMIT/NAME       a relative link to a blob
//                             /refs/main                   the commit that `main` was last seen at
//         /.locks/models--OWNER--REPO/HASH.lock            flock: who downloads this blob
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/base/disk.h"
#include "core/base/result.h"

namespace tierd {

// Returns the folder that the environment names, which need not be there. Error: not_found where no variable
// says where homes are.
Result<std::string> hub_cache_folder();

// This is one repository in the cache. Functions that only look make nothing; each error names the path.
class HubCache {
 public:
  // `repository`: OWNER/REPO, which has been looked at.
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
  // Returns the commit of refs/main, if it is known.
  std::optional<std::string> main() const;
  // Returns the names of the files of a snapshot that are whole.
  std::vector<std::string> files(const std::string& commit) const;

  // Makes the folders into which a blob is downloaded.
  Status prepare() const;
  // Waits until nobody else downloads this blob, and tells so once in a line unless `quiet`. The lock is
  // given up with what is returned; its file stays, as huggingface_hub leaves it.
  Result<OpenFile> lock(const std::string& hash, bool quiet) const;
  // Puts a blob that is there into a snapshot.
  Status link(const std::string& commit, const std::string& name, const std::string& hash) const;
  Status set_main(const std::string& commit) const;

 private:
  std::string folder_;
  std::string name_;  // models--OWNER--REPO
  std::string root_;  // folder_/name_
};

}  // namespace tierd
