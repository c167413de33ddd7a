#include "tools/tierd/hub_model.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "core/base/log.h"
#include "core/base/standard_streams.h"
#include "core/base/units.h"
#include "tools/command_line/exit_code.h"
#include "tools/tierd/hub/hub.h"

namespace tierd {
namespace {

using nlohmann::json;

json download_json(const HubModel& model, const HubSettings& settings) {
  json files = json::array();
  for (const HubFile& file : model.missing) files.push_back({{"name", file.name}, {"bytes", file.bytes}});
  return {{"download",
           {{"repository", model.repository},
            {"commit", model.listing.commit},
            {"endpoint", settings.endpoint},
            {"files", std::move(files)},
            {"to_download_bytes", model.needed_bytes},
            {"cache", settings.cache},
            {"disk_left_bytes", model.left_bytes}}}};
}

std::string download_text(const HubModel& model, const HubSettings& settings) {
  const auto size = [](uint64_t bytes) { return format_bytes(static_cast<double>(bytes)); };
  std::string text = fmt::format(
      "{} is not in the cache; --check downloads nothing, but a run would download:\n", model.repository);
  for (const HubFile& file : model.missing) text += fmt::format("  {:<12} {}\n", size(file.bytes), file.name);
  text += fmt::format("  {:<12} to {}, whose disk has {} left\n", size(model.needed_bytes), settings.cache,
                      size(model.left_bytes));
  return text;
}

int print_download(const Arguments& arguments, const HubModel& model, const HubSettings& settings) {
  const Status room = room_for(model, settings);
  if (!room.ok()) return fail(room.error(), kBadInput);
  const Status written = write_output(arguments.json ? download_json(model, settings).dump(2) + "\n"
                                                     : download_text(model, settings));
  return written.ok() ? 0 : fail(written.error(), kFailed);
}

// Does the work of take_hub_model for one model.
std::optional<int> take(const HubRequest& request, const HubSettings& settings, const Arguments& arguments,
                        std::string& path) {
  if (request.repository.empty()) return std::nullopt;
  const auto model = find_model(request, settings);
  if (!model.ok()) return fail(model.error(), exit_code(model.error()));
  if (arguments.check && !model->missing.empty()) return print_download(arguments, *model, settings);
  if (!model->missing.empty() && !arguments.quiet) {
    const size_t files = model->missing.size();
    say(fmt::format("{}: {} file{} ({}) {} downloaded into {}", model->repository, files,
                    files == 1 ? "" : "s", format_bytes(static_cast<double>(model->needed_bytes)),
                    files == 1 ? "is" : "are", settings.cache));
  }
  auto fetched = fetch_model(*model, settings);
  if (!fetched.ok()) return fail(fetched.error(), exit_code(fetched.error()));
  path = std::move(*fetched);
  return std::nullopt;
}

}  // namespace

std::optional<int> take_hub_model(Arguments& arguments) {
  if (arguments.hub.repository.empty() && arguments.draft_hub.repository.empty()) return std::nullopt;
  const auto settings = hub_settings(arguments.hub_token, arguments.offline, arguments.quiet);
  if (!settings.ok()) return fail(settings.error(), exit_code(settings.error()));
  if (const auto ended = take(arguments.hub, *settings, arguments, arguments.config.model)) return ended;
  return take(arguments.draft_hub, *settings, arguments, arguments.config.speculation.model);
}

}  // namespace tierd
