// Downloads one file from the hub into the cache. It resumes after a broken connection or an earlier run, and
// renames the file to its final name when it is complete.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "core/base/progress.h"
#include "core/base/result.h"
#include "tools/tierd/hub/cache.h"
#include "tools/tierd/hub/repository.h"
#include "tools/tierd/hub/web_client.h"

namespace tierd {

struct Patience {
  uint32_t tries = 6;  // without progress, before the download fails
  WebPatience connection = {};
  // Waits before the next try. Tests replace it.
  std::function<void(std::chrono::seconds)> wait;
};

// Repeats a request as often as `patience` allows. A server that cannot be reached is tried again only with
// `persist`. Errors: those of WebClient; not_found where the server could not be reached, or every try broke
// off; and refusal() for answers other than 200 and 206.
class PatientClient {
 public:
  PatientClient(Patience patience, bool quiet);

  // `moved`: returns whether bytes have arrived since the last call. `say_line`: receives a line for people
  // at each new try.
  Result<WebReply> get(const std::function<WebRequest()>& request, const WebSink& sink, bool persist,
                       const std::function<bool()>& moved,
                       const std::function<void(const std::string&)>& say_line);

 private:
  Patience patience_;
  bool quiet_;
  WebClient client_;
};

// Returns one line on what an answer without a file means and how to proceed. It contains no token. `what`:
// "owner/repo" or "owner/repo/file"; `page`: where a licence is accepted; `with_token`: the request had a
// token.
Error refusal(const WebReply& reply, const std::string& what, const std::string& page, bool with_token);

struct BlobSource {
  std::string url;    // of the file at its commit
  std::string token;  // or empty
  std::string page;   // of the repository, for people
};

// Downloads the blob of `file` under its lock, unless the cache has it. `progress` counts the file's bytes,
// also those that an earlier run downloaded. Errors: those of PatientClient; corrupt for bytes that do not
// match the listing, which are removed; no_space, which names the needed and free bytes; io_error of the
// disk.
Status download_blob(PatientClient& client, const HubCache& cache, const HubFile& file,
                     const BlobSource& source, Progress& progress, bool quiet);

// Returns the free bytes of the disk of `path` for this user. A path that does not exist stands for its
// nearest existing folder. Error: io_error, which names the path.
Result<uint64_t> disk_left(const std::string& path);

}  // namespace tierd
