#include "tools/tierd/hub/download.h"

#include <fmt/format.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <optional>
#include <system_error>
#include <thread>
#include <vector>

#include "core/base/disk.h"
#include "core/base/units.h"
#include "tools/tierd/hub/digest.h"

namespace tierd {
namespace {

constexpr std::chrono::seconds kLongestPause(30);  // that tierd chooses itself
constexpr std::chrono::seconds kLongestWait(300);  // that a server may ask for
constexpr size_t kHashedAtOnce = size_t{1} << 20;  // bytes

std::string size_of(uint64_t bytes) {
  return format_bytes(static_cast<double>(bytes));
}

bool may_pass(long status) {
  return status == 408 || status == 429 || status == 500 || status == 502 || status == 503 || status == 504;
}

std::optional<uint64_t> number_of(std::string_view text) {
  uint64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, number);
  if (read.ec != std::errc() || read.ptr != end) return std::nullopt;
  return number;
}

// Parses "bytes 100-199/200": the first byte and, if given, the file's size.
struct ContentRange {
  uint64_t from = 0;
  std::optional<uint64_t> bytes;
};
std::optional<ContentRange> content_range(std::string_view text) {
  constexpr std::string_view kUnit = "bytes ";
  if (!text.starts_with(kUnit)) return std::nullopt;
  text.remove_prefix(kUnit.size());
  const size_t dash = text.find('-'), slash = text.find('/');
  if (dash == std::string_view::npos || slash == std::string_view::npos || slash < dash) return std::nullopt;
  const auto from = number_of(text.substr(0, dash));
  if (!from) return std::nullopt;
  return ContentRange{*from, number_of(text.substr(slash + 1))};
}

// A blob that is being downloaded: the bytes on disk, and their hash.
class Incoming {
 public:
  Incoming(const HubCache& cache, const HubFile& file, Progress& progress)
      : path_(cache.incomplete(file.hash)),
        file_(file),
        progress_(progress),
        digest_(file.hash.size(), file.bytes) {}

  // Opens the file, and hashes the bytes of an earlier run.
  Status open() {
    TIERD_ASSIGN(open_, disk_.open(path_, false));
    TIERD_ASSIGN(const uint64_t found, open_.size());
    if (found > file_.bytes) return begin_again();
    std::vector<std::byte> part(std::min<uint64_t>(found, kHashedAtOnce));
    while (have_ < found) {
      const std::span<std::byte> next = std::span(part).first(std::min<uint64_t>(part.size(), found - have_));
      TIERD_TRY(open_.read(have_, next));
      digest_.add(next);
      have_ += next.size();
      progress_.skip(next.size());
    }
    furthest_ = have_;
    return {};
  }

  uint64_t have() const { return have_; }
  bool whole() const { return have_ == file_.bytes; }
  const std::string& etag() const { return etag_; }
  // Returns whether the file has grown beyond its longest size since the last call.
  bool moved() { return have_ > std::exchange(furthest_, std::max(furthest_, have_)); }

  Status begin(const WebReply& reply) {
    const auto stranger = [&](const std::string& why) {
      return Error{Code::corrupt, reply.url, fmt::format("{}, {} bytes were expected", why, file_.bytes)};
    };
    if (reply.status == 206) {
      const auto range = content_range(reply.header("content-range"));
      if (range && range->bytes && *range->bytes != file_.bytes)
        return stranger(fmt::format("the file has {} bytes", *range->bytes));
      const bool fits = range && range->from == have_ && (etag_.empty() || reply.header("etag") == etag_);
      // The bytes on disk belong to another file, or the answer has another first byte: it cannot be used.
      if (!fits) return begin_again_at_next_try();
    } else {
      const auto length = number_of(reply.header("content-length"));
      if (length && *length != file_.bytes) return stranger(fmt::format("the file has {} bytes", *length));
      if (have_ > 0) TIERD_TRY(begin_again());
    }
    const std::string& etag = reply.header("etag");
    etag_ = etag.starts_with('"') ? etag : "";  // a weak one says nothing about bytes
    return {};
  }

  Status bytes(std::span<const std::byte> part) {
    if (part.size() > file_.bytes - have_) {
      TIERD_TRY(disk_.remove(path_));
      return Error{Code::corrupt, path_,
                   fmt::format("more bytes came than the {} that were expected; it is removed", file_.bytes)};
    }
    const Status written = disk_.write(open_, have_, part);
    if (!written.ok()) return explained(written.error());
    digest_.add(part);
    have_ += part.size();
    progress_.advance(part.size());
    return {};
  }

  Status begin_again() {
    TIERD_TRY(disk_.truncate(open_, 0));
    progress_.take_back(have_);
    have_ = 0;
    etag_.clear();
    digest_ = Digest(file_.hash.size(), file_.bytes);
    return {};
  }

  // Returns whether the last answer was refused only to begin again.
  bool asks_for_another() { return std::exchange(another_, false); }

  // Renames a complete file whose checksum is right. Removes any other.
  Status finish(const std::string& blob) {
    const std::string found = digest_.finish();
    if (found != file_.hash) {
      TIERD_TRY(disk_.remove(path_));
      return Error{
          Code::corrupt, path_,
          fmt::format("{} has the checksum {}, {} was expected; it is removed, and the next run downloads it "
                      "again",
                      file_.name, found, file_.hash)};
    }
    TIERD_TRY(disk_.sync(open_));
    TIERD_TRY(disk_.rename(path_, blob));
    TIERD_ASSIGN(const OpenFile folder, open_directory(parent_directory(blob)));
    return disk_.sync(folder);
  }

 private:
  Status begin_again_at_next_try() {
    TIERD_TRY(begin_again());
    another_ = true;
    return Error{Code::busy, path_, "the file has changed in between"};
  }

  Error explained(Error error) const {
    if (error.code != Code::no_space) return error;
    const auto left = disk_left(path_);
    error.detail +=
        fmt::format("; {} are still to come, and the disk has {} left; what has come is kept",
                    size_of(file_.bytes - have_), left.ok() ? size_of(*left) : "an unknown number");
    return error;
  }

  std::string path_;
  const HubFile& file_;
  Progress& progress_;
  Digest digest_;
  Disk disk_;
  OpenFile open_;
  uint64_t have_ = 0;  // bytes
  std::string etag_;   // of the answers of this run; empty: not known
  uint64_t furthest_ = 0;
  bool another_ = false;
};

}  // namespace

PatientClient::PatientClient(Patience patience, bool quiet)
    : patience_(std::move(patience)), quiet_(quiet), client_(patience_.connection) {
  if (!patience_.wait)
    patience_.wait = [](std::chrono::seconds pause) { std::this_thread::sleep_for(pause); };
}

Result<WebReply> PatientClient::get(const std::function<WebRequest()>& request, const WebSink& sink,
                                    bool persist, const std::function<bool()>& moved,
                                    const std::function<void(const std::string&)>& say_line) {
  std::chrono::seconds pause(1);
  for (uint32_t tried = 1;; ++tried) {
    TIERD_ASSIGN(WebReply reply, client_.get(request(), sink));
    if (reply.broken.empty() && !may_pass(reply.status)) return reply;
    if (moved()) {
      tried = 1;
      pause = std::chrono::seconds(1);
    }
    const std::string why =
        reply.broken.empty() ? fmt::format("the answer is {}", reply.status) : reply.broken;
    if (!reply.reached && !persist)
      return Error{Code::not_found, reply.url, "the server cannot be reached: " + why};
    if (tried == patience_.tries) {
      return Error{Code::not_found, reply.url,
                   fmt::format("{} ({} tries without a byte more); what has come is kept", why, tried)};
    }
    std::chrono::seconds wait = pause;
    if (const auto asked = number_of(reply.header("retry-after")); asked && reply.broken.empty()) {
      if (*asked > static_cast<uint64_t>(kLongestWait.count())) {
        return Error{Code::not_found, reply.url,
                     fmt::format("{}: the server asks to come back in {}; what has come is kept", why,
                                 format_duration(static_cast<double>(*asked)))};
      }
      wait = std::max(wait, std::chrono::seconds(*asked));
    }
    if (!quiet_) say_line(fmt::format("{}: {}; trying again in {} s", reply.url, why, wait.count()));
    patience_.wait(wait);
    pause = std::min(2 * pause, kLongestPause);
  }
}

Error refusal(const WebReply& reply, const std::string& what, const std::string& page, bool with_token) {
  const std::string& code = reply.header("x-error-code");
  const std::string token = with_token ? "the token that was shown does not admit to it"
                                       : "set HF_TOKEN to an access token (huggingface.co/settings/tokens)";
  const auto error = [&](const std::string& why) {
    return Error{Code::not_found, reply.url, fmt::format("{} ({})", why, reply.status)};
  };
  if (code == "GatedRepo")
    return error(
        fmt::format("{} is given only to who accepts its licence: do so at {}, and {}", what, page, token));
  if (reply.status == 401 || reply.status == 403)
    return error(fmt::format("{} is not there, or not for everybody: {}; a licence is accepted at {}", what,
                             token, page));
  if (reply.status == 404) return error(what + " is not there");
  return error("the server does not give " + what);
}

Status download_blob(PatientClient& client, const HubCache& cache, const HubFile& file,
                     const BlobSource& source, Progress& progress, bool quiet) {
  TIERD_ASSIGN(const OpenFile lock, cache.lock(file.hash, quiet));
  if (cache.has_blob(file.hash)) {
    progress.skip(file.bytes);
    return {};
  }
  Incoming incoming(cache, file, progress);
  TIERD_TRY(incoming.open());
  const WebSink sink = {[&](const WebReply& reply) { return incoming.begin(reply); },
                        [&](std::span<const std::byte> part) { return incoming.bytes(part); }};
  const auto request = [&] { return WebRequest{source.url, source.token, incoming.have(), incoming.etag()}; };
  // An answer that ends early without an error counts as a broken connection. So does a file that has
  // changed.
  for (int beginnings = 0; !incoming.whole();) {
    const auto reply = client.get(
        request, sink, true, [&] { return incoming.moved(); },
        [&](const std::string& line) { progress.say_above(line); });
    if (!reply.ok() && incoming.asks_for_another() && ++beginnings < 3) continue;
    if (!reply.ok()) return reply.error();
    if (reply->status == 416 && ++beginnings < 3) {
      TIERD_TRY(incoming.begin_again());
      continue;
    }
    if (reply->status != 200 && reply->status != 206)
      return refusal(*reply, file.name, source.page, !source.token.empty());
    if (!incoming.whole() && !incoming.moved()) {
      return Error{
          Code::corrupt, reply->url,
          fmt::format("the file ends after {} bytes, {} were expected", incoming.have(), file.bytes)};
    }
  }
  return incoming.finish(cache.blob(file.hash));
}

Result<uint64_t> disk_left(const std::string& path) {
  const std::string there = nearest_existing(path);
  struct statvfs disk {};
  if (::statvfs(there.c_str(), &disk) != 0)
    return Error{Code::io_error, there, std::generic_category().message(errno)};
  return uint64_t{disk.f_bavail} * disk.f_frsize;
}

}  // namespace tierd
