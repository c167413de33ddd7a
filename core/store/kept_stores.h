// The stores in the cache folder: what they are, when they were last used, and their removal.
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
    unfinished,  // a conversion goes on, or was interrupted
    unreadable,  // damaged, made by another version, or half removed
  };
  std::string path;
  State state = State::whole;
  std::string why;      // of an unreadable one, a line
  uint64_t bytes = 0;   // that it takes on disk
  int64_t used_s = 0;   // when a run last began with it, or it was written to; s since 1970
  bool in_use = false;  // a run has it open, or writes it
  // Whole ones have these:
  std::string source;  // path of the model that it was made from, as it was given
  bool source_gone = false;
  std::string layout;                  // as --layout names it
  std::vector<std::string> encodings;  // of its sites, each once, what most bytes have first
};

// All in `folder`, the least recently used first; none where there is no such folder. Errors: io_error.
Result<std::vector<KeptStore>> kept_stores(const std::string& folder);

// From the first step on it is no store any more. What has it open keeps its bytes until it ends. Error:
// io_error, naming the file.
Status remove_store(const std::string& path);

// A run begins with this store. Only one in the cache folder is marked; where that is not possible, nothing
// happens.
void mark_used(const std::string& path);

}  // namespace tierd
