#include "core/run/asked_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "core/store/compressed_plan.h"
#include "core/store/encoding_choice.h"
#include "core/store/source.h"

namespace tierd {
namespace {

constexpr std::string_view kNone = "none";
constexpr std::string_view kSource = "source";
constexpr std::string_view kSame = "same";

// A key with its configured value and the value of the store.
struct Asked {
  std::string_view key;
  std::string asked;
  std::string stored;
};

bool is_in_layers(const StoredSite& site) {
  return site.group != OpGroup::embed && site.group != OpGroup::head;
}

// Returns the encoding that most bytes of these sites have.
std::string most_bytes(const Manifest& manifest, bool layers) {
  std::vector<std::pair<Encoding, uint64_t>> bytes;
  for (const StoredSite& site : manifest.sites) {
    if (is_in_layers(site) != layers) continue;
    for (const Encoding encoding : site.encodings) {
      auto found = std::ranges::find(bytes, encoding, &std::pair<Encoding, uint64_t>::first);
      if (found == bytes.end()) found = bytes.insert(found, {encoding, 0});
      found->second += site.tensor_bytes() / site.encodings.size();
    }
  }
  const auto most = std::ranges::max_element(bytes, {}, &std::pair<Encoding, uint64_t>::second);
  return most == bytes.end() ? std::string(kNone) : std::string(name(most->first));
}

std::string editions_of(const Manifest& manifest) {
  std::string text;
  std::vector<Encoding> listed;
  for (const StoredSite& edition : manifest.editions) {
    const Encoding encoding = edition.encodings.front();
    if (std::ranges::find(listed, encoding) != listed.end()) continue;
    listed.push_back(encoding);
    text += (text.empty() ? "" : ",") + std::string(name(encoding));
  }
  return text.empty() ? std::string(kNone) : text;
}

// "q8_0, q4_0" and "q8_0,q4_0" name the same editions.
std::string without_spaces(std::string text) {
  std::erase(text, ' ');
  return text;
}

// Returns all properties that the configuration requires of a store. An encoding "source", and a head
// encoding "same", require nothing.
std::vector<Asked> demands(const Config& config, const Manifest& manifest) {
  std::vector<Asked> all = {
      {"model.layout", config.layout, std::string(name(manifest.layout))},
      {"model.layer_group", std::to_string(config.layer_group), std::to_string(manifest.layer_group)},
      {"model.experts", config.experts, std::string(name(manifest.experts))},
      {"model.bundling", config.bundling, std::string(name(manifest.bundling))},
      {"model.compression", config.compression, std::string(manifest.compression_name())},
      {"model.editions", without_spaces(config.editions), editions_of(manifest)},
  };
  if (config.encoding != kSource)
    all.push_back({"model.encoding", config.encoding, most_bytes(manifest, true)});
  if (config.head_encoding != kSource && config.head_encoding != kSame)
    all.push_back({"model.head_encoding", config.head_encoding, most_bytes(manifest, false)});
  return all;
}

std::string remedy(const Asked& demand, const Manifest& manifest) {
  const std::string& source = manifest.provenance.source;
  std::error_code unknown;
  if (std::filesystem::exists(source, unknown)) return fmt::format("-m {} converts the model anew", source);
  return fmt::format("--set {}={} takes the store as it is", demand.key, demand.stored);
}

}  // namespace

Status check_asked_store(const Config& config, const Store& store) {
  const Manifest& manifest = store.manifest();
  if (is_store(config.model)) {
    for (const Asked& demand : demands(config, manifest)) {
      const auto given = config.given.find(demand.key);
      if (given == config.given.end() || demand.asked == demand.stored) continue;
      return Error{Code::invalid_argument, std::string(demand.key),
                   fmt::format("{} asks for \"{}\", and the store {} has \"{}\": {}", given->second,
                               demand.asked, store.directory(), demand.stored, remedy(demand, manifest))};
    }
  }
  // The compressed size of neurons is known once they are packed.
  if (config.compression == kNone || compresses(manifest) || !store.made()) return {};
  return compresses_nothing(config.compression, config.model, config.tokenizer, manifest.config);
}

}  // namespace tierd
