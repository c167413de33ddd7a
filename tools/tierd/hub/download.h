// One file comes from the hub into the cache: it goes on where another run or a broken connection has left
// off, and has its name only when it is whole.
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
  uint32_t tries = 6;  // without a byte more, until it is given up
  WebPatience connection = {};
  // Waits before the next try; tests need not.
  std::function<void(std::chrono::seconds)> wait;
};

// Asks the hub as many times as `patience` allows. A server that cannot be reached is
// tried again only where `persist`. Errors: those of WebClient; not_found where it could not be reached, or
// broke off to the end; and what refusal() says of other answers than 200 and 206.
class PatientClient {
 public:
  PatientClient(Patience patience, bool quiet);

  // `moved`: whether anything has come since it was last asked. `say_line`: takes a line for people on each
  // new try.
  Result<WebReply> get(const std::function<WebRequest()>& request, const WebSink& sink, bool persist,
                       const std::function<bool()>& moved,
                       const std::function<void(const std::string&)>& say_line);

 private:
  Patience patience_;
  bool quiet_;
  WebClient client_;
};

// Says in one line what an answer means that is no file, and what to do; no token is in it. `what`:
// "owner/repo" or "owner/repo/file"; `page`: where a licence is accepted; `with_token`: whether one was
// shown.
Error refusal(const WebReply& reply, const std::string& what, const std::string& page, bool with_token);

struct BlobSource {
  std::string url;    // of the file at its commit
  std::string token;  // or empty
  std::string page;   // of the repository, for people
};

// Makes the blob of `file`, unless it is there; takes its lock meanwhile. `progress` moves by the file's
// bytes, those that were there included. Errors: those of PatientClient; corrupt where bytes are not those
// that the listing promised, which are removed then; no_space with what is needed and left; io_error of the
// disk.
Status download_blob(PatientClient& client, const HubCache& cache, const HubFile& file,
                     const BlobSource& source, Progress& progress, bool quiet);

// Returns the bytes that the disk of `path` has left for the user; where the path is not there, of the folder
// that would hold it. Error: io_error naming it.
Result<uint64_t> disk_left(const std::string& path);

}  // namespace tierd
