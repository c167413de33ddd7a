#include "core/store/manifest_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cctype>
#include <cstring>
#include <optional>

#include "core/base/checksum.h"
#include "core/base/json_fields.h"
#include "core/model/model_json.h"
#include "core/store/compressed_plan.h"
#include "core/store/manifest_check.h"
#include "core/store/planner.h"

namespace tierd {
namespace {

static_assert(std::endian::native == std::endian::little);

using nlohmann::json;
using nlohmann::ordered_json;

constexpr std::string_view kChecksumHead = "{\"xxh3\": \"";
constexpr std::string_view kChecksumTail = "\",\n";
constexpr size_t kFirstLineBytes = kChecksumHead.size() + 16 + kChecksumTail.size();

// The keys of a site that not every site has, and those of its lists.
constexpr const char* kEditionOf = "site";
constexpr const char* kEncodings = "encodings";
constexpr const char* kRowsPerNeuron = "rows_per_neuron";
constexpr const char* kCompression = "compression";
constexpr const char* kCompressed = "compressed";

// Writes the facts about a site that do not follow from the model and the layout.
ordered_json to_json(const StoredSite& site, std::string_view compression) {
  ordered_json out;
  if (site.edition_of != kNoSite) out[kEditionOf] = site.edition_of;
  out.update(
      {{"name", site.name},
       {"first_extent", site.first_extent},
       {kEncodings, ordered_json::array()},
       {"encoding_error", site.encoding_error ? ordered_json(*site.encoding_error) : ordered_json(nullptr)}});
  for (const Encoding encoding : site.encodings) out[kEncodings].push_back(name(encoding));
  if (const auto* rows = std::get_if<Rows>(&site.cut)) out[kRowsPerNeuron] = rows->rows;
  if (site.compression != Compression::none) {
    out[kCompression] = compression;
    for (auto at = site.compressed.begin(); at != site.compressed.end();) {
      const auto end = std::find_if(at, site.compressed.end(), [&](uint32_t bytes) { return bytes != *at; });
      out[kCompressed].push_back({*at, end - at});
      at = end;
    }
  }
  return out;
}

ordered_json to_json(const ResidentTensor& tensor) {
  return {{"name", tensor.name}, {"rows", tensor.rows}, {"cols", tensor.cols}, {"extent", tensor.extent}};
}

// Extents of one size, each `stride` behind the one before: half a million bundles become some lines.
struct ExtentRun {
  uint64_t offset = 0;
  uint64_t bytes = 0;
  uint64_t stride = 0;
  uint64_t count = 0;
};

std::vector<ExtentRun> runs_of(const std::vector<Extent>& extents) {
  std::vector<ExtentRun> runs;
  for (const Extent& extent : extents) {
    if (!runs.empty() && runs.back().bytes == extent.bytes) {
      ExtentRun& run = runs.back();
      if (run.count == 1) run.stride = extent.offset - run.offset;
      if (run.offset + run.count * run.stride == extent.offset) {
        ++run.count;
        continue;
      }
    }
    runs.push_back({extent.offset, extent.bytes, extent.bytes, 1});
  }
  return runs;
}

ordered_json to_json(const ExtentRun& run) {
  return {run.offset, run.bytes, run.stride, run.count};
}

// Writes one element a line, so that manifests are easy to read and compare.
template <class T, class... Context>
std::string lines(const std::vector<T>& elements, const Context&... context) {
  std::string out = "[";
  for (size_t i = 0; i < elements.size(); ++i) {
    out += (i == 0 ? "\n  " : ",\n  ") + to_json(elements[i], context...).dump();
  }
  return out + "\n]";
}

// Reads the sizes of compressed neurons, as runs of one size. Accepts at most as many as there are extents,
// which bounds the memory that a hostile count can take.
Status read_compressed(const JsonFields& fields, uint64_t extents, const Manifest& manifest,
                       StoredSite& site) {
  std::string text;
  TIERD_TRY(fields.read(kCompression, text));
  if (text != manifest.compression_name() || manifest.compression == Compression::none)
    return fields.error(kCompression,
                        fmt::format("is '{}', but '{}' for the store", text, manifest.compression_name()));
  site.compression = manifest.compression;
  TIERD_TRY(fields.read_each(kCompressed, [&](const json& value, size_t index) -> Status {
    const bool numbers = value.is_array() && value.size() == 2 && value[0].is_number_unsigned() &&
                         value[1].is_number_unsigned();
    const std::string key = fmt::format("{}[{}]", kCompressed, index);
    if (!numbers) return fields.wrong(key, value, "[bytes, neurons]");
    const auto bytes = value[0].get<uint64_t>(), count = value[1].get<uint64_t>();
    const uint64_t most = std::min<uint64_t>(site.neurons(), extents) - site.compressed.size();
    if (count > most || bytes == 0 || bytes > UINT32_MAX)
      return fields.error(
          key, fmt::format("has {} neurons of {} bytes, more than the site or the store has", count, bytes));
    site.compressed.insert(site.compressed.end(), count, static_cast<uint32_t>(bytes));
    return {};
  }));
  if (site.compressed.size() == site.neurons()) return {};
  return fields.error(kCompressed,
                      fmt::format("has {} neurons, expected {}", site.compressed.size(), site.neurons()));
}

// Reads the stored facts about `site`, whose shape follows from the model.
Status from_json(const JsonFields& fields, uint64_t extents, const Manifest& manifest, StoredSite& site) {
  std::string text;
  TIERD_TRY(fields.read("name", text));
  if (text != site.name) return fields.error("name", fmt::format("is '{}', expected '{}'", text, site.name));
  TIERD_TRY(fields.read("first_extent", site.first_extent));
  TIERD_ASSIGN(const json* error, fields.member("encoding_error"));
  if (!error->is_null()) TIERD_TRY(fields.read("encoding_error", site.encoding_error.emplace()));
  if (auto* rows = std::get_if<Rows>(&site.cut)) TIERD_TRY(fields.read(kRowsPerNeuron, rows->rows));
  size_t read = 0;
  TIERD_TRY(fields.read_each(kEncodings, [&](const json& value, size_t index) -> Status {
    const auto encoding =
        value.is_string() ? by_name<Encoding>(value.get_ref<const std::string&>()) : std::nullopt;
    if (!encoding) return fields.wrong(fmt::format("{}[{}]", kEncodings, index), value, "an encoding");
    if (index < site.parts.size()) site.encodings[index] = *encoding;
    read = index + 1;
    return {};
  }));
  if (read == site.parts.size())
    return fields.has(kCompression) ? read_compressed(fields, extents, manifest, site) : Status();
  return fields.error(kEncodings, fmt::format("has {} elements, expected {}", read, site.parts.size()));
}

Status from_json(const JsonFields& fields, ResidentTensor& tensor) {
  TIERD_TRY(fields.read("name", tensor.name));
  TIERD_TRY(fields.read("rows", tensor.rows));
  TIERD_TRY(fields.read("cols", tensor.cols));
  return fields.read("extent", tensor.extent);
}

template <class T>
Status read_objects(const JsonFields& top, std::string_view key, std::vector<T>& out) {
  return top.read_each(key, [&](const json& value, size_t index) -> Status {
    TIERD_ASSIGN(const JsonFields fields, top.element(key, index, value));
    return from_json(fields, out.emplace_back());
  });
}

// Reads runs of extents, in all as many as there are checksums, which bounds the memory of a hostile count.
Status read_extents(const JsonFields& top, std::string_view checksums, std::vector<Extent>& out) {
  const uint64_t expected = checksums.size() / sizeof(uint64_t);
  out.reserve(expected);
  TIERD_TRY(top.read_each("extents", [&](const json& value, size_t index) -> Status {
    const std::string key = fmt::format("extents[{}]", index);
    const bool numbers = value.is_array() && value.size() == 4 && value[0].is_number_unsigned() &&
                         value[1].is_number_unsigned() && value[2].is_number_unsigned() &&
                         value[3].is_number_unsigned();
    if (!numbers) return top.wrong(key, value, "[offset, bytes, stride, count]");
    const ExtentRun run = {value[0].get<uint64_t>(), value[1].get<uint64_t>(), value[2].get<uint64_t>(),
                           value[3].get<uint64_t>()};
    if (run.count == 0 || run.count > expected - out.size()) {
      return top.error(key, fmt::format("has {} extents, expected 1 to {}: there are {} checksums", run.count,
                                        expected - out.size(), expected));
    }
    for (uint64_t i = 0; i < run.count; ++i) {
      Extent& extent = out.emplace_back(Extent{run.offset, run.bytes, 0});
      extent.offset += i * run.stride;  // may wrap around; check_manifest checks every offset
      std::memcpy(&extent.checksum, checksums.data() + (out.size() - 1) * sizeof(uint64_t), sizeof(uint64_t));
    }
    return {};
  }));
  if (out.size() == expected) return {};
  return top.error(
      "extents", fmt::format("has {} extents, expected one for each of {} checksums", out.size(), expected));
}

Status read_layer_group(const JsonFields& top, uint32_t& out) {
  TIERD_TRY(top.read("layer_group", out));
  if (out >= 1 && out <= kMostLayersOfGroup) return {};
  return top.error("layer_group", fmt::format("is {}, expected 1 to {}", out, kMostLayersOfGroup));
}

// Reads the cut of experts, a key that only stores with experts in channels have.
Status read_experts(const JsonFields& top, ExpertCut& out) {
  std::string text;
  TIERD_TRY(top.read("experts", text));
  const auto cut = by_name<ExpertCut>(text);
  if (!cut) return top.error("experts", fmt::format("is '{}', expected 'whole' or 'channels'", text));
  out = *cut;
  return {};
}

// Reads the sites. Their shapes follow from model and layout, and are made only if the file lists as many,
// which bounds the memory that a hostile model can take.
Status read_sites(const JsonFields& top, std::string_view file, uint64_t extents, Manifest& manifest) {
  if (const Status valid = validate(manifest.config, file); !valid.ok())
    return top.error("model", valid.error().detail);
  if (manifest.experts == ExpertCut::channels &&
      (manifest.layout != Layout::channel_group || !manifest.config.is_mixture()))
    return top.error("experts",
                     "is 'channels', which is supported for mixtures in layout channel-group only");
  // Otherwise a step would look up an order of down's channels that the store does not have.
  if (manifest.config.expert_order &&
      (!manifest.config.channel_order || manifest.experts != ExpertCut::channels))
    return top.error("model.expert_order", "is true, which requires channel_order and experts in channels");
  TIERD_ASSIGN(const json* listed, top.member("sites"));
  const uint64_t expected = n_sites(manifest.config, manifest.layout, manifest.experts);
  if (listed->is_array() && listed->size() != expected)
    return top.error("sites", fmt::format("has {} elements, expected {}", listed->size(), expected));
  if (listed->is_array()) {
    manifest.sites = site_shapes(manifest.config, manifest.layout, manifest.bundling, manifest.layer_group,
                                 manifest.experts);
  }
  return top.read_each("sites", [&](const json& value, size_t index) -> Status {
    TIERD_ASSIGN(const JsonFields fields, top.element("sites", index, value));
    return from_json(fields, extents, manifest, manifest.sites[index]);
  });
}

// Reads further editions of the sites, which are read already: the same neurons in other encodings.
Status read_editions(const JsonFields& top, uint64_t extents, Manifest& manifest) {
  return top.read_each("editions", [&](const json& value, size_t index) -> Status {
    TIERD_ASSIGN(const JsonFields fields, top.element("editions", index, value));
    uint32_t site = 0;
    TIERD_TRY(fields.read(kEditionOf, site));
    const uint32_t before = manifest.editions.empty() ? 0 : manifest.editions.back().edition_of;
    if (site < before || site >= manifest.sites.size()) {
      return fields.error(kEditionOf,
                          fmt::format("is {}, expected {} to {}", site, before, manifest.sites.size() - 1));
    }
    StoredSite& edition = manifest.editions.emplace_back(StoredSite(manifest.sites[site]));
    edition.edition_of = site;
    edition.encoding_error.reset();
    edition.compression = Compression::none;
    edition.compressed.clear();
    return from_json(fields, extents, manifest, edition);
  });
}

Status check_checksums(const JsonFields& top, std::string_view checksums, std::string_view file) {
  std::string expected;
  TIERD_TRY(top.read("checksums", expected));
  const std::string found = checksum_text(checksum(checksums));
  if (found != expected) {
    return Error{
        Code::corrupt, std::string(file),
        fmt::format("has checksum {}, but {} by the manifest: the store is damaged; convert the model again",
                    found, expected)};
  }
  if (checksums.size() % sizeof(uint64_t) == 0) return {};
  return Error{Code::corrupt, std::string(file),
               fmt::format("has {} bytes, expected 8 for each extent", checksums.size())};
}

Status check_first_line(std::string_view text, std::string_view file) {
  if (text.size() < kFirstLineBytes || !text.starts_with(kChecksumHead) ||
      text.substr(kFirstLineBytes - kChecksumTail.size(), kChecksumTail.size()) != kChecksumTail) {
    return Error{Code::corrupt, std::string(file), "does not start with a line that has its checksum"};
  }
  const std::string_view found = text.substr(kChecksumHead.size(), 16);
  const std::string expected = checksum_text(checksum(text.substr(kFirstLineBytes)));
  if (found == expected) return {};
  return Error{Code::corrupt, std::string(file),
               fmt::format("its text has checksum {}, but {} by its first line: the manifest is damaged; "
                           "convert the model again",
                           expected, found)};
}

Status check_version(const JsonFields& top, std::string_view file) {
  uint32_t format = 0;
  TIERD_TRY(top.read("format", format));
  if (format < kFormatWithoutEditions || format > kStoreFormat) {
    return Error{Code::unsupported, std::string(file),
                 fmt::format("format: is {}, expected {} to {}; convert the model again", format,
                             kFormatWithoutEditions, kStoreFormat)};
  }
  return {};
}

Status read_layout(const JsonFields& top, std::string_view file, Layout& out) {
  std::string text;
  TIERD_TRY(top.read("layout", text));
  const auto layout = by_name<Layout>(text);
  if (!layout) {
    return Error{Code::unsupported, std::string(file),
                 fmt::format("layout: is '{}', expected 'row', 'neuron' or 'channel-group'", text)};
  }
  out = *layout;
  return {};
}

// Returns whether a codec may have this name, which becomes part of a file name.
bool is_codec_name(std::string_view name) {
  constexpr size_t kLongest = 64;
  return !name.empty() && name.size() <= kLongest && std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
  });
}

Status read_compression(const JsonFields& top, std::string_view file, Manifest& out) {
  std::string text;
  TIERD_TRY(top.read("compression", text));
  if (const auto compression = compression_by_name(text)) {
    out.compression = *compression;
    return {};
  }
  if (!is_codec_name(text)) {
    return Error{Code::unsupported, std::string(file),
                 fmt::format("compression: is '{}', expected 'none', 'bitmap' or the name of a codec", text)};
  }
  out.compression = Compression::codec;
  out.codec = std::move(text);
  TIERD_TRY(top.read("codec_settings", out.codec_settings));
  if (std::ranges::none_of(out.codec_settings,
                           [](char c) { return std::iscntrl(static_cast<unsigned char>(c)); }))
    return {};
  return Error{Code::corrupt, std::string(file), "codec_settings: has control characters"};
}

Status read_bundling(const JsonFields& top, std::string_view file, Bundling& out) {
  std::string text;
  TIERD_TRY(top.read("bundling", text));
  const auto bundling = by_name<Bundling>(text);
  if (!bundling) {
    return Error{Code::unsupported, std::string(file),
                 fmt::format("bundling: is '{}', expected 'row-column' or 'none'", text)};
  }
  out = *bundling;
  return {};
}

// Returns the lowest format that can express this store.
uint32_t format_of(const Manifest& manifest) {
  if (manifest.experts == ExpertCut::channels) return kStoreFormat;
  return manifest.editions.empty() ? kFormatWithoutEditions : kFormatWithWholeExperts;
}

}  // namespace

std::string manifest_text(const Manifest& manifest) {
  const ordered_json provenance = {{"source", string_to_json(manifest.provenance.source)},
                                   {"fingerprint", string_to_json(manifest.provenance.fingerprint)},
                                   {"made_by", string_to_json(manifest.provenance.made_by)}};
  std::string text = fmt::format("\"format\": {},\n\"layout\": \"{}\",\n\"bundling\": \"{}\",\n",
                                 format_of(manifest), name(manifest.layout), name(manifest.bundling));
  if (manifest.layout == Layout::channel_group)
    text += fmt::format("\"layer_group\": {},\n", manifest.layer_group);
  if (manifest.experts != ExpertCut::whole)
    text += fmt::format("\"experts\": \"{}\",\n", name(manifest.experts));
  if (manifest.compression != Compression::none)
    text += fmt::format("\"compression\": \"{}\",\n", manifest.compression_name());
  if (manifest.compression == Compression::codec)
    text += fmt::format("\"codec_settings\": {},\n", string_to_json(manifest.codec_settings).dump());
  text += fmt::format("\"provenance\": {},\n", provenance.dump());
  text +=
      fmt::format("\"tensor_bytes\": {},\n\"data_bytes\": {},\n", manifest.tensor_bytes, manifest.data_bytes);
  text += fmt::format("\"model\": {},\n", to_json(manifest.config).dump(1));
  text += fmt::format("\"sites\": {},\n", lines(manifest.sites, manifest.compression_name()));
  if (!manifest.editions.empty())
    text += fmt::format("\"editions\": {},\n", lines(manifest.editions, manifest.compression_name()));
  text += fmt::format("\"resident\": {},\n", lines(manifest.resident));
  text += fmt::format("\"extents\": {},\n", lines(runs_of(manifest.extents)));
  text += fmt::format("\"checksums\": \"{}\",\n", checksum_text(checksum(checksum_bytes(manifest))));
  text += fmt::format("\"vocab\": {}}}\n", manifest.has_vocab ? to_json(manifest.vocab).dump() : "null");
  return fmt::format("{}{}{}{}", kChecksumHead, checksum_text(checksum(text)), kChecksumTail, text);
}

std::string checksum_bytes(const Manifest& manifest) {
  std::string bytes(manifest.extents.size() * sizeof(uint64_t), '\0');
  for (size_t i = 0; i < manifest.extents.size(); ++i) {
    std::memcpy(bytes.data() + i * sizeof(uint64_t), &manifest.extents[i].checksum, sizeof(uint64_t));
  }
  return bytes;
}

std::string plan_text(Manifest manifest) {
  if (manifest.compression != Compression::none) manifest = dense_plan(std::move(manifest));
  for (Extent& extent : manifest.extents) extent.checksum = 0;
  for (StoredSite& site : manifest.sites) site.encoding_error.reset();
  for (StoredSite& edition : manifest.editions) edition.encoding_error.reset();
  manifest.provenance = {"", manifest.provenance.fingerprint, ""};
  return manifest_text(manifest);
}

Result<Manifest> parse_manifest(std::string_view text, std::string_view file, std::string_view checksums,
                                std::string_view checksum_file) {
  TIERD_TRY(check_first_line(text, file));
  TIERD_ASSIGN(const json parsed, parse_json(text, file));
  TIERD_ASSIGN(const JsonFields top, JsonFields::of(parsed, std::string(file)));
  Manifest manifest;
  TIERD_TRY(check_version(top, file));
  TIERD_TRY(read_layout(top, file, manifest.layout));
  TIERD_TRY(read_bundling(top, file, manifest.bundling));
  if (manifest.layout == Layout::channel_group) TIERD_TRY(read_layer_group(top, manifest.layer_group));
  if (top.has("experts")) TIERD_TRY(read_experts(top, manifest.experts));
  if (top.has("compression")) TIERD_TRY(read_compression(top, file, manifest));
  TIERD_TRY(check_checksums(top, checksums, checksum_file));
  TIERD_TRY(top.read("tensor_bytes", manifest.tensor_bytes));
  TIERD_TRY(top.read("data_bytes", manifest.data_bytes));
  TIERD_ASSIGN(const JsonFields provenance, top.object("provenance"));
  TIERD_TRY(provenance.read("source", manifest.provenance.source));
  TIERD_TRY(provenance.read("fingerprint", manifest.provenance.fingerprint));
  TIERD_TRY(provenance.read("made_by", manifest.provenance.made_by));
  TIERD_ASSIGN(const JsonFields model, top.object("model"));
  TIERD_TRY(from_json(model, manifest.config));
  TIERD_TRY(read_sites(top, file, checksums.size() / sizeof(uint64_t), manifest));
  if (top.has("editions")) TIERD_TRY(read_editions(top, checksums.size() / sizeof(uint64_t), manifest));
  TIERD_TRY(read_objects(top, "resident", manifest.resident));
  TIERD_TRY(read_extents(top, checksums, manifest.extents));
  TIERD_ASSIGN(const json* vocab, top.member("vocab"));
  manifest.has_vocab = !vocab->is_null();
  if (manifest.has_vocab) {
    TIERD_ASSIGN(const JsonFields fields, top.object("vocab"));
    TIERD_TRY(from_json(fields, manifest.vocab));
  }
  TIERD_TRY(check_manifest(manifest, file));
  return manifest;
}

}  // namespace tierd
