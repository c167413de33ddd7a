#include "core/store/manifest_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <optional>

#include "core/base/checksum.h"
#include "core/store/json_fields.h"
#include "core/store/manifest_check.h"
#include "core/store/manifest_fields.h"
#include "core/store/model_json.h"

namespace tierd {
namespace {

static_assert(std::endian::native == std::endian::little);

using nlohmann::json;
using nlohmann::ordered_json;

constexpr std::string_view kChecksumHead = "{\"xxh3\": \"";
constexpr std::string_view kChecksumTail = "\",\n";
constexpr size_t kFirstLineBytes = kChecksumHead.size() + 16 + kChecksumTail.size();

constexpr std::array<std::string_view, 4> kAxisNames = {"row", "neuron", "channel", "expert"};

ordered_json to_json(const StoredSite& site) {
  ordered_json out = {
      {"name", site.name},
      {"group", name(site.group)},
      {"axis", kAxisNames[static_cast<size_t>(site.axis)]},
      {"layer", site.layer == kNoLayer ? ordered_json(nullptr) : ordered_json(site.layer)},
      {"encoding", name(site.encoding)},
      {"n_in", site.n_in},
      {"n_out", site.n_out},
      {"rows_per_neuron", site.rows_per_neuron},
      {"neurons", site.neurons},
      {"first_extent", site.first_extent},
      {"pieces", site.pieces},
      {"alias_of", site.alias_of == kNoSite ? ordered_json(nullptr) : ordered_json(site.alias_of)},
      {"encoding_error", site.encoding_error ? ordered_json(*site.encoding_error) : ordered_json(nullptr)},
      {"parts", ordered_json::array()}};
  if (site.expert_number != kNoExpert) out["expert"] = site.expert_number;
  for (const SitePart& part : site.parts) {
    out["parts"].push_back({{"tensor", part.tensor}, {"rows", part.rows}, {"encoding", name(part.encoding)}});
  }
  return out;
}

ordered_json to_json(const ResidentTensor& tensor) {
  return {{"name", tensor.name}, {"rows", tensor.rows}, {"cols", tensor.cols}, {"extent", tensor.extent}};
}

// Extents of one size, each `stride` behind the one before: half a million bundles are some lines.
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

// One element a line, so that a person can read and compare manifests.
template <class T>
std::string lines(const std::vector<T>& elements) {
  std::string out = "[";
  for (size_t i = 0; i < elements.size(); ++i) {
    out += (i == 0 ? "\n  " : ",\n  ") + to_json(elements[i]).dump();
  }
  return out + "\n]";
}

// null stands for the largest value.
Status read_optional(const ManifestFields& fields, std::string_view key, uint32_t& out) {
  TIERD_ASSIGN(const json* value, fields.member(key));
  out = UINT32_MAX;
  return value->is_null() ? Status() : fields.read(key, out);
}

std::optional<OpGroup> group_by_name(std::string_view text) {
  for (const OpGroup group :
       {OpGroup::embed, OpGroup::qkv, OpGroup::o, OpGroup::up, OpGroup::down, OpGroup::head, OpGroup::ffn,
        OpGroup::experts, OpGroup::expert_up, OpGroup::expert_down}) {
    if (name(group) == text) return group;
  }
  return std::nullopt;
}

Status read_encoding(const ManifestFields& fields, Encoding& out) {
  std::string text;
  TIERD_TRY(fields.read("encoding", text));
  const auto encoding = encoding_by_name(text);
  if (!encoding) return fields.error("encoding", fmt::format("'{}' is not an encoding", text));
  out = *encoding;
  return {};
}

Status from_json(const ManifestFields& fields, StoredSite& site) {
  std::string text;
  TIERD_TRY(fields.read("name", site.name));
  TIERD_TRY(fields.read("group", text));
  const auto group = group_by_name(text);
  if (!group) return fields.error("group", fmt::format("'{}' is not an operator group", text));
  site.group = *group;
  TIERD_TRY(fields.read("axis", text));
  const auto axis = std::ranges::find(kAxisNames, text);
  if (axis == kAxisNames.end())
    return fields.error("axis", fmt::format("is '{}', expected row, neuron, channel or expert", text));
  site.axis = static_cast<Axis>(axis - kAxisNames.begin());
  TIERD_TRY(read_encoding(fields, site.encoding));
  TIERD_TRY(read_optional(fields, "layer", site.layer));
  if (fields.has("expert")) TIERD_TRY(fields.read("expert", site.expert_number));
  TIERD_TRY(fields.read("n_in", site.n_in));
  TIERD_TRY(fields.read("n_out", site.n_out));
  TIERD_TRY(fields.read("rows_per_neuron", site.rows_per_neuron));
  TIERD_TRY(fields.read("neurons", site.neurons));
  TIERD_TRY(fields.read("first_extent", site.first_extent));
  TIERD_TRY(fields.read("pieces", site.pieces));
  TIERD_TRY(read_optional(fields, "alias_of", site.alias_of));
  TIERD_ASSIGN(const json* error, fields.member("encoding_error"));
  if (!error->is_null()) TIERD_TRY(fields.read("encoding_error", site.encoding_error.emplace()));
  return fields.read_each("parts", [&](const json& value, size_t index) -> Status {
    TIERD_ASSIGN(const ManifestFields part, fields.element("parts", index, value));
    SitePart& read = site.parts.emplace_back();
    TIERD_TRY(part.read("tensor", read.tensor));
    TIERD_TRY(part.read("rows", read.rows));
    return read_encoding(part, read.encoding);
  });
}

Status from_json(const ManifestFields& fields, ResidentTensor& tensor) {
  TIERD_TRY(fields.read("name", tensor.name));
  TIERD_TRY(fields.read("rows", tensor.rows));
  TIERD_TRY(fields.read("cols", tensor.cols));
  return fields.read("extent", tensor.extent);
}

template <class T>
Status read_objects(const ManifestFields& top, std::string_view key, std::vector<T>& out) {
  return top.read_each(key, [&](const json& value, size_t index) -> Status {
    TIERD_ASSIGN(const ManifestFields fields, top.element(key, index, value));
    return from_json(fields, out.emplace_back());
  });
}

// Runs with as many extents together as there are checksums, which bounds what a hostile count can take.
Status read_extents(const ManifestFields& top, std::string_view checksums, std::vector<Extent>& out) {
  const uint64_t expected = checksums.size() / sizeof(uint64_t);
  out.reserve(expected);
  TIERD_TRY(top.read_each("extents", [&](const json& value, size_t index) -> Status {
    const std::string key = fmt::format("extents[{}]", index);
    const bool numbers = value.is_array() && value.size() == 4 && value[0].is_number_unsigned() &&
                         value[1].is_number_unsigned() && value[2].is_number_unsigned() &&
                         value[3].is_number_unsigned();
    if (!numbers) return top.wrong_type(key, value, "[offset, bytes, stride, count]");
    const ExtentRun run = {value[0].get<uint64_t>(), value[1].get<uint64_t>(), value[2].get<uint64_t>(),
                           value[3].get<uint64_t>()};
    if (run.count == 0 || run.count > expected - out.size()) {
      return top.error(key, fmt::format("has {} extents, expected 1 to {}: there are {} checksums", run.count,
                                        expected - out.size(), expected));
    }
    for (uint64_t i = 0; i < run.count; ++i) {
      Extent& extent = out.emplace_back(Extent{run.offset, run.bytes, 0});
      extent.offset += i * run.stride;  // past 64 bits it is anywhere: all are checked
      std::memcpy(&extent.checksum, checksums.data() + (out.size() - 1) * sizeof(uint64_t), sizeof(uint64_t));
    }
    return {};
  }));
  if (out.size() == expected) return {};
  return top.error("extents", fmt::format("are {}, there are {} checksums", out.size(), expected));
}

Status read_layer_group(const ManifestFields& top, uint32_t& out) {
  TIERD_TRY(top.read("layer_group", out));
  if (out >= 1 && out <= kMostLayersOfGroup) return {};
  return top.error("layer_group", fmt::format("is {}, expected 1 to {}", out, kMostLayersOfGroup));
}

// Of a mixture. Stores that were made when experts were always whole do not say.
Status read_expert_cut(const ManifestFields& top, Manifest& manifest) {
  if (manifest.layout != Layout::channel_group || !top.has("experts")) return {};
  std::string text;
  TIERD_TRY(top.read("experts", text));
  const auto cut = expert_cut_by_name(text);
  if (!cut) return top.error("experts", fmt::format("is '{}', expected whole or channels", text));
  manifest.experts = *cut;
  return {};
}

// They follow from the layout.
void set_strides(Manifest& manifest) {
  for (StoredSite& site : manifest.sites) {
    if (site.axis == Axis::channel && site.layer != kNoLayer && site.expert_number == kNoExpert)
      site.stride = layers_of_group(manifest.config.n_layers, manifest.layer_group, site.layer);
  }
}

Status check_checksums(const ManifestFields& top, std::string_view checksums, std::string_view file) {
  std::string expected;
  TIERD_TRY(top.read("checksums", expected));
  const std::string found = checksum_text(checksum(checksums));
  if (found != expected) {
    return Error{Code::corrupt, std::string(file),
                 fmt::format("has checksum {}, the manifest says {}: the store is damaged", found, expected)};
  }
  if (checksums.size() % sizeof(uint64_t) == 0) return {};
  return Error{Code::corrupt, std::string(file),
               fmt::format("has {} bytes, expected 8 for each extent", checksums.size())};
}

Status check_first_line(std::string_view text, std::string_view file) {
  if (text.size() < kFirstLineBytes || !text.starts_with(kChecksumHead) ||
      text.substr(kFirstLineBytes - kChecksumTail.size(), kChecksumTail.size()) != kChecksumTail) {
    return Error{Code::corrupt, std::string(file), "does not start with the line of its checksum"};
  }
  const std::string_view found = text.substr(kChecksumHead.size(), 16);
  const std::string expected = checksum_text(checksum(text.substr(kFirstLineBytes)));
  if (found == expected) return {};
  return Error{Code::corrupt, std::string(file),
               fmt::format("its text has checksum {}, its first line says {}: the manifest is damaged",
                           expected, found)};
}

Status check_version(const ManifestFields& top, std::string_view file) {
  uint32_t format = 0;
  TIERD_TRY(top.read("format", format));
  if (format != kStoreFormat) {
    return Error{
        Code::unsupported, std::string(file),
        fmt::format("format: is {}, this program reads {}; convert the model again", format, kStoreFormat)};
  }
  return {};
}

Status read_layout(const ManifestFields& top, std::string_view file, Layout& out) {
  std::string text;
  TIERD_TRY(top.read("layout", text));
  const auto layout = layout_by_name(text);
  if (!layout) {
    return Error{
        Code::unsupported, std::string(file),
        fmt::format("layout: is '{}', this program reads 'row', 'neuron' and 'channel-group'", text)};
  }
  out = *layout;
  return {};
}

Status read_bundling(const ManifestFields& top, std::string_view file, Bundling& out) {
  std::string text;
  TIERD_TRY(top.read("bundling", text));
  const auto bundling = bundling_by_name(text);
  if (!bundling) {
    return Error{Code::unsupported, std::string(file),
                 fmt::format("bundling: is '{}', this program reads 'row-column' and 'none'", text)};
  }
  out = *bundling;
  return {};
}

}  // namespace

std::string manifest_text(const Manifest& manifest) {
  const ordered_json provenance = {{"source", string_to_json(manifest.provenance.source)},
                                   {"fingerprint", string_to_json(manifest.provenance.fingerprint)},
                                   {"made_by", string_to_json(manifest.provenance.made_by)}};
  std::string text = fmt::format("\"format\": {},\n\"layout\": \"{}\",\n\"bundling\": \"{}\",\n",
                                 kStoreFormat, name(manifest.layout), name(manifest.bundling));
  if (manifest.layout == Layout::channel_group)
    text += fmt::format("\"layer_group\": {},\n", manifest.layer_group);
  if (manifest.layout == Layout::channel_group && manifest.config.is_mixture())
    text += fmt::format("\"experts\": \"{}\",\n", name(manifest.experts));
  text += fmt::format("\"provenance\": {},\n", provenance.dump());
  text +=
      fmt::format("\"tensor_bytes\": {},\n\"data_bytes\": {},\n", manifest.tensor_bytes, manifest.data_bytes);
  text += fmt::format("\"model\": {},\n", to_json(manifest.config).dump(1));
  text += fmt::format("\"sites\": {},\n", lines(manifest.sites));
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
  for (Extent& extent : manifest.extents) extent.checksum = 0;
  for (StoredSite& site : manifest.sites) site.encoding_error.reset();
  manifest.provenance = {"", manifest.provenance.fingerprint, ""};
  return manifest_text(manifest);
}

Result<Manifest> parse_manifest(std::string_view text, std::string_view file, std::string_view checksums,
                                std::string_view checksum_file) {
  TIERD_TRY(check_first_line(text, file));
  TIERD_ASSIGN(const json parsed, parse_json(text, file));  // an object: the first line begins one
  const ManifestFields top(parsed, file, "");
  Manifest manifest;
  TIERD_TRY(check_version(top, file));
  TIERD_TRY(read_layout(top, file, manifest.layout));
  TIERD_TRY(read_bundling(top, file, manifest.bundling));
  if (manifest.layout == Layout::channel_group) TIERD_TRY(read_layer_group(top, manifest.layer_group));
  TIERD_TRY(read_expert_cut(top, manifest));
  TIERD_TRY(check_checksums(top, checksums, checksum_file));
  TIERD_TRY(top.read("tensor_bytes", manifest.tensor_bytes));
  TIERD_TRY(top.read("data_bytes", manifest.data_bytes));
  TIERD_ASSIGN(const ManifestFields provenance, top.object("provenance"));
  TIERD_TRY(provenance.read("source", manifest.provenance.source));
  TIERD_TRY(provenance.read("fingerprint", manifest.provenance.fingerprint));
  TIERD_TRY(provenance.read("made_by", manifest.provenance.made_by));
  TIERD_ASSIGN(const ManifestFields model, top.object("model"));
  TIERD_TRY(from_json(model, manifest.config));
  TIERD_TRY(read_objects(top, "sites", manifest.sites));
  set_strides(manifest);
  TIERD_TRY(read_objects(top, "resident", manifest.resident));
  TIERD_TRY(read_extents(top, checksums, manifest.extents));
  TIERD_ASSIGN(const json* vocab, top.member("vocab"));
  manifest.has_vocab = !vocab->is_null();
  if (manifest.has_vocab) {
    TIERD_ASSIGN(const ManifestFields fields, top.object("vocab"));
    TIERD_TRY(from_json(fields, manifest.vocab));
  }
  TIERD_TRY(check_manifest(manifest, file));
  return manifest;
}

}  // namespace tierd
