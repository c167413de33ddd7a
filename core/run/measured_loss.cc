#include "core/run/measured_loss.h"

#include <fmt/format.h>

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <span>
#include <string_view>
#include <system_error>
#include <vector>

#include "core/base/checksum.h"
#include "core/base/disk.h"
#include "core/base/file.h"
#include "core/base/json_fields.h"

namespace tierd {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::string_view kFolder = "losses";
constexpr uint64_t kLargestFile = 64u << 10;
constexpr uint64_t kMostValues = 1000;
constexpr double kSameMemory = 0.05;  // shares of all weights that differ by more are different memories

std::string key_of(const LossSettings& settings) {
  return checksum_text(checksum(settings.text));
}

// Returns "0123456789abcdef.json", or "0123456789abcdef-48-20.json" with the shares of tiers in percent.
std::string file_name(const LossSettings& settings) {
  std::string name = key_of(settings);
  for (const auto& [tier, share] : settings.resident) name += fmt::format("-{:.0f}", 100 * share);
  return name + ".json";
}

// Returns whether a terminal can print the text safely: control characters could move its cursor.
bool is_printable(std::string_view text) {
  return std::ranges::none_of(text, [](unsigned char c) { return c < 0x20 || c == 0x7f; });
}
std::string printable(std::string text) {
  std::ranges::replace_if(
      text, [](unsigned char c) { return c < 0x20 || c == 0x7f; }, '?');
  return text;
}

Result<double> number(const JsonFields& fields, std::string_view key, double least) {
  TIERD_ASSIGN(const json* found, fields.member(key));
  const double value = found->is_number() ? found->get<double>() : NAN;
  if (!(value >= least) || !std::isfinite(value))
    return fields.wrong(key, *found, fmt::format("a number of at least {}", least));
  return value;
}

Result<std::optional<double>> share(const JsonFields& fields, const char* key) {
  if (!fields.has(key)) return std::optional<double>();
  TIERD_ASSIGN(const double value, number(fields, key, 0));
  if (value > 1) return fields.error(key, fmt::format("found {}, expected a share of at most 1", value));
  return std::optional(value);
}

Result<std::string> line(const JsonFields& fields, const char* key) {
  TIERD_ASSIGN(std::string value, fields.text(key));
  if (!is_printable(value)) return fields.error(key, "has control characters, expected one line of text");
  return value;
}

struct Verdict {
  LossSettings settings;
  MeasuredLoss loss;
};

Result<Verdict> read_verdict(const std::string& path) {
  TIERD_ASSIGN(const json object, read_json_file(path, kLargestFile, kMostValues));
  TIERD_ASSIGN(const JsonFields fields, JsonFields::of(object, path));
  Verdict verdict;
  TIERD_ASSIGN(verdict.settings.text, fields.text("settings"));
  TIERD_ASSIGN(const JsonFields resident, fields.object("resident"));
  TIERD_ASSIGN(const json* tiers, fields.member("resident"));
  for (const auto& [tier, value] : tiers->items()) {
    TIERD_ASSIGN(verdict.settings.resident[tier], number(resident, tier, 0));
  }
  MeasuredLoss& loss = verdict.loss;
  TIERD_ASSIGN(loss.divergence, number(fields, "divergence", 0));
  TIERD_ASSIGN(loss.reference_perplexity, number(fields, "reference_perplexity", 1));
  TIERD_ASSIGN(loss.perplexity, number(fields, "perplexity", 1));
  TIERD_ASSIGN(const double tokens, number(fields, "tokens", 1));
  loss.tokens = static_cast<uint64_t>(std::min(tokens, 1e18));
  TIERD_ASSIGN(loss.text, line(fields, "text"));
  TIERD_ASSIGN(loss.text_checksum, line(fields, "text_checksum"));
  TIERD_ASSIGN(loss.used_neurons, share(fields, "used_neurons"));
  TIERD_ASSIGN(loss.used_bytes, share(fields, "used_bytes"));
  if (loss.used_neurons.has_value() != loss.used_bytes.has_value())
    return fields.error("used_bytes", "expected together with used_neurons");
  TIERD_ASSIGN(loss.date, line(fields, "date"));
  TIERD_ASSIGN(loss.against_store, fields.flag("against_store"));
  return verdict;
}

// Returns the largest difference of any tier's share; infinite if the tiers differ.
double distance(const std::map<std::string, double>& a, const std::map<std::string, double>& b) {
  if (a.size() != b.size()) return INFINITY;
  double most = 0;
  for (const auto& [tier, share] : a) {
    const auto other = b.find(tier);
    if (other == b.end()) return INFINITY;
    most = std::max(most, std::abs(share - other->second));
  }
  return most;
}

// Returns the files of one key. Error: io_error, for a folder that cannot be read.
Result<std::vector<std::string>> files_of(const fs::path& folder, const std::string& key) {
  std::vector<std::string> files;
  std::error_code failed;
  if (!fs::exists(folder, failed) && (!failed || failed == std::errc::no_such_file_or_directory))
    return files;
  for (auto entry = fs::directory_iterator(folder, failed); !failed && entry != fs::directory_iterator();
       entry.increment(failed)) {
    const std::string name = entry->path().filename().string();
    if (name.starts_with(key) && name.ends_with(".json")) files.push_back(entry->path().string());
  }
  if (failed) return Error{Code::io_error, folder.string(), failed.message()};
  std::ranges::sort(files);
  return files;
}

json to_json(const LossSettings& settings, const MeasuredLoss& loss) {
  const auto or_null = [](const std::optional<double>& of) { return of ? json(*of) : json(nullptr); };
  return {{"settings", settings.text},
          {"resident", json(settings.resident)},
          {"divergence", loss.divergence},
          {"reference_perplexity", loss.reference_perplexity},
          {"perplexity", loss.perplexity},
          {"tokens", loss.tokens},
          {"text", printable(loss.text)},
          {"text_checksum", loss.text_checksum},
          {"used_neurons", or_null(loss.used_neurons)},
          {"used_bytes", or_null(loss.used_bytes)},
          {"date", loss.date},
          {"against_store", loss.against_store}};
}

}  // namespace

Result<std::optional<MeasuredLoss>> find_loss(const std::string& store, const LossSettings& settings) {
  TIERD_ASSIGN(const std::vector<std::string> files, files_of(fs::path(store) / kFolder, key_of(settings)));
  std::optional<MeasuredLoss> nearest;
  double least = kSameMemory;
  for (const std::string& file : files) {
    TIERD_ASSIGN(const Verdict verdict, read_verdict(file));
    const double away = distance(verdict.settings.resident, settings.resident);
    if (verdict.settings.text != settings.text || !(away <= least)) continue;
    nearest = verdict.loss;
    least = away;
  }
  return nearest;
}

Result<std::string> keep_loss(const std::string& store, const LossSettings& settings,
                              const MeasuredLoss& loss) {
  const std::string folder = (fs::path(store) / kFolder).string();
  const std::string path = folder + "/" + file_name(settings);
  const std::string partial = fmt::format("{}.{}.partial", path, ::getpid());
  // Bytes of a name that are not UTF-8 are replaced.
  const std::string text = to_json(settings, loss).dump(2, ' ', false, json::error_handler_t::replace) + "\n";
  Disk disk;
  TIERD_TRY(disk.make_directory(folder));
  // Refuses a folder that is a link, which could lead out of the store.
  TIERD_ASSIGN(const OpenFile entries, open_directory(folder, false));
  const auto write = [&]() -> Status {
    TIERD_ASSIGN(const OpenFile file, disk.open(partial, true));
    TIERD_TRY(disk.write(file, 0, std::as_bytes(std::span(text))));
    TIERD_TRY(disk.sync(file));
    TIERD_TRY(disk.rename(partial, path));
    return disk.sync(entries);
  };
  if (const Status written = write(); !written.ok()) {
    (void)disk.remove(partial);
    return written.error();
  }
  return path;
}

}  // namespace tierd
