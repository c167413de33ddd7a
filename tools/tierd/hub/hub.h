// Finds a model by its name on a hub such as huggingface.co: in the cache, or by a download into it.
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
  bool offline = false;  // use the cache alone
  bool quiet = false;
  Patience patience = {};
};
// Reads the environment. `token`: that of the command line, or empty. Errors: those of environment.h.
Result<HubSettings> hub_settings(const std::string& token, bool offline, bool quiet);

// The path of a model, and the files that must be downloaded first.
struct HubModel {
  std::string path;              // of the file or folder to open, once no file is missing
  std::vector<HubFile> missing;  // not in the cache, or not whole
  uint64_t needed_bytes = 0;     // to download for them
  uint64_t left_bytes = 0;       // on the cache's disk; set where files are missing
  // The input of fetch_model:
  std::string repository;
  HubListing listing;
  std::vector<HubFile> files;  // all, in the order in which they are linked into the snapshot
};

// Looks into the cache. Asks the hub where files are missing, or where another file would be the usual
// choice. A model of the cache is used where the hub cannot be reached. Writes nothing and downloads no file.
// Errors: those of choose_files, parse_listing and PatientClient.
Result<HubModel> find_model(const HubRequest& request, const HubSettings& settings);

// Downloads the missing files, and returns the model's path. Errors: no_space before any byte is written,
// where the cache's disk has too few free bytes; those of download_blob and HubCache.
Result<std::string> fetch_model(const HubModel& model, const HubSettings& settings);

// Returns no_space, with the needed and free bytes, where the cache's disk has no room for the missing files.
Status room_for(const HubModel& model, const HubSettings& settings);

}  // namespace tierd
