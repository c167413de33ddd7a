#include "tools/tierd/hub/hub.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "core/base/log.h"
#include "core/base/units.h"
#include "tools/tierd/hub/cache.h"
#include "tools/tierd/hub/choice.h"
#include "tools/tierd/hub/environment.h"

namespace tierd {
namespace {

std::string page_of(const HubSettings& settings, const std::string& repository) {
  return shown_url(settings.endpoint + "/" + repository);
}

// A model that the cache has completely.
struct Cached {
  std::string path;
  bool certain = false;
};
std::optional<Cached> in_snapshot(const HubCache& cache, const std::string& commit,
                                  const HubRequest& request) {
  const auto choice = choose_files(cache.files(commit), request, cache.snapshot(commit));
  if (!choice.ok()) return std::nullopt;
  return Cached{choice->model.empty() ? cache.snapshot(commit) : cache.file(commit, choice->model),
                choice->certain};
}

// Searches every commit's snapshot, main's first.
std::optional<Cached> in_cache(const HubCache& cache, const HubRequest& request) {
  for (const std::string& commit : cache.commits()) {
    if (auto found = in_snapshot(cache, commit, request)) return found;
  }
  return std::nullopt;
}

Result<HubListing> ask_hub(const HubRequest& request, const HubSettings& settings) {
  const std::string url =
      fmt::format("{}/api/models/{}/revision/main?blobs=true", settings.endpoint, request.repository);
  std::string body;
  bool moved = false;
  const WebSink sink = {[&](const WebReply&) -> Status {
                          body.clear();
                          return {};
                        },
                        [&](std::span<const std::byte> part) -> Status {
                          moved = true;
                          if (body.size() + part.size() > kLongestListing) {
                            return Error{Code::corrupt, shown_url(url),
                                         fmt::format("the answer is longer than {} bytes", kLongestListing)};
                          }
                          body.append(reinterpret_cast<const char*>(part.data()), part.size());
                          return {};
                        }};
  PatientClient client(settings.patience, settings.quiet);
  TIERD_ASSIGN(const WebReply reply,
               client.get([&] { return WebRequest{.url = url, .token = settings.token}; }, sink, false,
                          [] { return false; }, [](const std::string& line) { say(line); }));
  if (reply.status != 200)
    return refusal(reply, request.repository, page_of(settings, request.repository), !settings.token.empty());
  return parse_listing(body, reply.url);
}

// Returns the files of the listing that make the model, and the bytes to download.
Result<HubModel> plan_download(const HubRequest& request, HubListing listing, const HubSettings& settings) {
  const HubCache cache(settings.cache, request.repository);
  std::vector<std::string> names;
  for (const HubFile& file : listing.files) names.push_back(file.name);
  TIERD_ASSIGN(const HubChoice choice,
               choose_files(std::move(names), request, page_of(settings, request.repository)));
  HubModel model;
  model.repository = request.repository;
  model.path =
      choice.model.empty() ? cache.snapshot(listing.commit) : cache.file(listing.commit, choice.model);
  for (const std::string& name : choice.files) {
    const HubFile& file = *std::ranges::find(listing.files, name, &HubFile::name);
    if (file.hash.empty()) {
      return Error{Code::unsupported, page_of(settings, request.repository),
                   fmt::format("the hub tells neither size nor checksum of {}", name)};
    }
    model.files.push_back(file);
    if (cache.has_blob(file.hash)) continue;
    model.missing.push_back(file);
    model.needed_bytes += file.bytes - std::min(file.bytes, cache.incomplete_bytes(file.hash));
  }
  model.listing = std::move(listing);
  if (!model.missing.empty()) {
    TIERD_ASSIGN(model.left_bytes, disk_left(settings.cache));
  }
  return model;
}

}  // namespace

Result<HubSettings> hub_settings(const std::string& token, bool offline, bool quiet) {
  HubSettings settings;
  TIERD_ASSIGN(settings.cache, hub_cache_folder());
  TIERD_ASSIGN(settings.endpoint, hub_endpoint());
  TIERD_ASSIGN(settings.token, hub_token(token));
  settings.offline = offline || hub_offline();
  settings.quiet = quiet;
  return settings;
}

Result<HubModel> find_model(const HubRequest& request, const HubSettings& settings) {
  const HubCache cache(settings.cache, request.repository);
  const auto cached_model = [](const Cached& found) {
    HubModel model;
    model.path = found.path;
    return model;
  };
  if (const auto main = cache.main()) {
    const auto found = in_snapshot(cache, *main, request);
    if (found && found->certain) return cached_model(*found);
  }
  if (settings.offline) {
    if (const auto found = in_cache(cache, request)) return cached_model(*found);
    return Error{
        Code::not_found, settings.cache,
        fmt::format("{} is not in the cache, and --offline (or HF_HUB_OFFLINE) forbids to download it",
                    request.file.empty()
                        ? request.repository + (request.quant.empty() ? "" : ":" + request.quant)
                        : request.repository + "/" + request.file)};
  }
  auto listing = ask_hub(request, settings);
  if (listing.ok()) return plan_download(request, std::move(*listing), settings);
  const auto found = in_cache(cache, request);
  if (!found) return listing.error();
  if (!settings.quiet) say(fmt::format("{}; the cache has {}", listing.error().line(), found->path));
  return cached_model(*found);
}

Status room_for(const HubModel& model, const HubSettings& settings) {
  if (model.needed_bytes <= model.left_bytes) return {};
  return Error{
      Code::no_space, settings.cache,
      fmt::format("{} are to be downloaded, and its disk has {} left; HF_HUB_CACHE names a folder on another "
                  "disk",
                  format_bytes(static_cast<double>(model.needed_bytes)),
                  format_bytes(static_cast<double>(model.left_bytes)))};
}

Result<std::string> fetch_model(const HubModel& model, const HubSettings& settings) {
  if (model.files.empty()) return model.path;  // the model was found in the cache
  const HubCache cache(settings.cache, model.repository);
  if (!model.missing.empty()) {
    TIERD_TRY(room_for(model, settings));
    TIERD_TRY(cache.prepare());
    uint64_t bytes = 0;
    for (const HubFile& file : model.missing) bytes += file.bytes;
    PatientClient client(settings.patience, settings.quiet);
    Progress progress("downloading", bytes, settings.quiet);
    for (const HubFile& file : model.missing) {
      const std::string url = fmt::format("{}/{}/resolve/{}/{}", settings.endpoint, model.repository,
                                          model.listing.commit, url_path(file.name));
      const BlobSource source{url, settings.token, page_of(settings, model.repository)};
      TIERD_TRY(download_blob(client, cache, file, source, progress, settings.quiet));
    }
    progress.finish();
  }
  for (const HubFile& file : model.files) TIERD_TRY(cache.link(model.listing.commit, file.name, file.hash));
  TIERD_TRY(cache.set_main(model.listing.commit));
  return model.path;
}

}  // namespace tierd
