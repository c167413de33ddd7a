// The stores in the cache folder: their contents, when each was last used, and their removal.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/store/manifest.h"

namespace tierd {

struct KeptStore {
  enum class State : uint8_t {
    whole,
    unfinished,  // being converted, or its conversion was interrupted
    unreadable,  // damaged, made by another version, or half removed
  };
  std::string path;
  State state = State::whole;
  std::string why;      // error line if unreadable
  uint64_t bytes = 0;   // size on disk
  int64_t used_s = 0;   // when a run last started with it, or the last write to it; seconds since 1970
  bool in_use = false;  // a run has it open or writes it
  // For whole stores only:
  std::string source;  // path of the model it was made from, as given
  bool source_gone = false;
  std::string layout;                  // as --layout names it
  std::vector<std::string> encodings;  // of its sites, each once, by the bytes they take, the most first
};

// Returns all stores in `folder`, the least recently used first; none without the folder. Errors: io_error.
Result<std::vector<KeptStore>> kept_stores(const std::string& folder);

// Renames the store, so that it is no store from the first step on, then deletes it. A process that has its
// files open keeps their bytes until it ends. Error: io_error, naming the file.
Status remove_store(const std::string& path);

// Records that a run starts with this store, if it is in the cache folder; failures are ignored.
void mark_used(const std::string& path);

}  // namespace tierd
