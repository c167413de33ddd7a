// A model that is called by its name on a hub such as huggingface.co is found in the cache, or downloaded
// into it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "tools/tierd/hub/download.h"
#include "tools/tierd/hub/repository.h"

namespace tierd {

struct HubSettings {
  std::string cache;     // its folder
  std::string endpoint;  // without a slash at its end
  std::string token;     // or empty
  bool offline = false;  // the cache alone
  bool quiet = false;
  Patience patience = {};
};
// Reads the environment; `token`: the one of the command line, or empty. Errors: those of environment.h.
Result<HubSettings> hub_settings(const std::string& token, bool offline, bool quiet);

// This is where a model lies, or what is to come first.
struct HubModel {
  std::string path;              // of the file or folder to open, once nothing is missing
  std::vector<HubFile> missing;  // not in the cache, or not whole
  uint64_t needed_bytes = 0;     // that are to be downloaded for them
  uint64_t left_bytes = 0;       // on the cache's disk; told where something is missing
  // What fetch_model needs.
  std::string repository;
  HubListing listing;
  std::vector<HubFile> files;  // all, in the order in which they are put into the snapshot
};

// Looks into the cache, and asks the hub where that cannot tell: because something is missing, or because
// another file would be the usual choice. Where the hub cannot be reached, a model that the cache has is
// taken. Nothing is written, and of files no byte is downloaded. Errors: those of choose_files, parse_listing
// and PatientClient.
Result<HubModel> find_model(const HubRequest& request, const HubSettings& settings);

// Downloads what is missing, and returns the model's path. Errors: no_space before anything is written, where
// the cache's disk has not enough left; those of download_blob and HubCache.
Result<std::string> fetch_model(const HubModel& model, const HubSettings& settings);

// Error: no_space, which says how much is needed and left, where the cache's disk has no room for what is
// missing.
Status room_for(const HubModel& model, const HubSettings& settings);

}  // namespace tierd
