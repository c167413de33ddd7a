#include "core/store/manifest_json.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <optional>

#include "core/store/checksum.h"
#include "core/store/json_fields.h"
#include "core/store/manifest_check.h"
#include "core/store/manifest_fields.h"
#include "core/store/model_json.h"

namespace tierd {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr std::string_view kChecksumHead = "{\"xxh3\": \"";
constexpr std::string_view kChecksumTail = "\",\n";
constexpr size_t kFirstLineBytes = kChecksumHead.size() + 16 + kChecksumTail.size();

constexpr std::array<std::string_view, 2> kAxisNames = {"row", "neuron"};

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
      {"alias_of", site.alias_of == kNoSite ? ordered_json(nullptr) : ordered_json(site.alias_of)},
      {"parts", ordered_json::array()}};
  for (const SitePart& part : site.parts) {
    out["parts"].push_back({{"tensor", part.tensor}, {"rows", part.rows}});
  }
  return out;
}

ordered_json to_json(const ResidentTensor& tensor) {
  return {{"name", tensor.name}, {"rows", tensor.rows}, {"cols", tensor.cols}, {"extent", tensor.extent}};
}

ordered_json to_json(const Extent& extent) {
  return {extent.offset, extent.bytes, checksum_text(extent.checksum)};
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
       {OpGroup::embed, OpGroup::qkv, OpGroup::o, OpGroup::up, OpGroup::down, OpGroup::head, OpGroup::ffn}) {
    if (name(group) == text) return group;
  }
  return std::nullopt;
}

Status from_json(const ManifestFields& fields, StoredSite& site) {
  std::string text;
  TIERD_TRY(fields.read("name", site.name));
  TIERD_TRY(fields.read("group", text));
  const auto group = group_by_name(text);
  if (!group) return fields.error("group", fmt::format("'{}' is not an operator group", text));
  site.group = *group;
  TIERD_TRY(fields.read("axis", text));
  if (text != kAxisNames[0] && text != kAxisNames[1]) {
    return fields.error("axis", fmt::format("is '{}', expected row or neuron", text));
  }
  site.axis = text == kAxisNames[0] ? Axis::row : Axis::neuron;
  TIERD_TRY(fields.read("encoding", text));
  const auto encoding = encoding_by_name(text);
  if (!encoding) return fields.error("encoding", fmt::format("'{}' is not an encoding", text));
  site.encoding = *encoding;
  TIERD_TRY(read_optional(fields, "layer", site.layer));
  TIERD_TRY(fields.read("n_in", site.n_in));
  TIERD_TRY(fields.read("n_out", site.n_out));
  TIERD_TRY(fields.read("rows_per_neuron", site.rows_per_neuron));
  TIERD_TRY(fields.read("neurons", site.neurons));
  TIERD_TRY(fields.read("first_extent", site.first_extent));
  TIERD_TRY(read_optional(fields, "alias_of", site.alias_of));
  return fields.read_each("parts", [&](const json& value, size_t index) -> Status {
    TIERD_ASSIGN(const ManifestFields part, fields.element("parts", index, value));
    SitePart& read = site.parts.emplace_back();
    TIERD_TRY(part.read("tensor", read.tensor));
    return part.read("rows", read.rows);
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

bool read_checksum(const json& value, uint64_t& out) {
  if (!value.is_string()) return false;
  const std::string& text = value.get_ref<const std::string&>();
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), out, 16);
  return status == std::errc() && text.size() == 16 && end == text.data() + text.size();
}

Status read_extents(const ManifestFields& top, std::vector<Extent>& out) {
  return top.read_each("extents", [&](const json& value, size_t index) -> Status {
    Extent& extent = out.emplace_back();
    if (!value.is_array() || value.size() != 3 || !value[0].is_number_unsigned() ||
        !value[1].is_number_unsigned() || !read_checksum(value[2], extent.checksum)) {
      return top.wrong_type(fmt::format("extents[{}]", index), value, "[offset, bytes, checksum]");
    }
    extent.offset = value[0].get<uint64_t>();
    extent.bytes = value[1].get<uint64_t>();
    return {};
  });
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
    return Error{Code::unsupported, std::string(file),
                 fmt::format("layout: is '{}', this program reads 'row' and 'neuron'", text)};
  }
  out = *layout;
  return {};
}

}  // namespace

std::string manifest_text(const Manifest& manifest) {
  const ordered_json provenance = {{"source", string_to_json(manifest.provenance.source)},
                                   {"fingerprint", string_to_json(manifest.provenance.fingerprint)},
                                   {"made_by", string_to_json(manifest.provenance.made_by)}};
  std::string text =
      fmt::format("\"format\": {},\n\"layout\": \"{}\",\n", kStoreFormat, name(manifest.layout));
  text += fmt::format("\"provenance\": {},\n", provenance.dump());
  text +=
      fmt::format("\"tensor_bytes\": {},\n\"data_bytes\": {},\n", manifest.tensor_bytes, manifest.data_bytes);
  text += fmt::format("\"model\": {},\n", to_json(manifest.config).dump(1));
  text += fmt::format("\"sites\": {},\n", lines(manifest.sites));
  text += fmt::format("\"resident\": {},\n", lines(manifest.resident));
  text += fmt::format("\"extents\": {},\n", lines(manifest.extents));
  text += fmt::format("\"vocab\": {}}}\n", manifest.has_vocab ? to_json(manifest.vocab).dump() : "null");
  return fmt::format("{}{}{}{}", kChecksumHead, checksum_text(checksum(text)), kChecksumTail, text);
}

std::string plan_text(Manifest manifest) {
  for (Extent& extent : manifest.extents) extent.checksum = 0;
  manifest.provenance = {"", manifest.provenance.fingerprint, ""};
  return manifest_text(manifest);
}

Result<Manifest> parse_manifest(std::string_view text, std::string_view file) {
  TIERD_TRY(check_first_line(text, file));
  TIERD_ASSIGN(const json parsed, parse_json(text, file));  // an object: the first line begins one
  const ManifestFields top(parsed, file, "");
  Manifest manifest;
  TIERD_TRY(check_version(top, file));
  TIERD_TRY(read_layout(top, file, manifest.layout));
  TIERD_TRY(top.read("tensor_bytes", manifest.tensor_bytes));
  TIERD_TRY(top.read("data_bytes", manifest.data_bytes));
  TIERD_ASSIGN(const ManifestFields provenance, top.object("provenance"));
  TIERD_TRY(provenance.read("source", manifest.provenance.source));
  TIERD_TRY(provenance.read("fingerprint", manifest.provenance.fingerprint));
  TIERD_TRY(provenance.read("made_by", manifest.provenance.made_by));
  TIERD_ASSIGN(const ManifestFields model, top.object("model"));
  TIERD_TRY(from_json(model, manifest.config));
  TIERD_TRY(read_objects(top, "sites", manifest.sites));
  TIERD_TRY(read_objects(top, "resident", manifest.resident));
  TIERD_TRY(read_extents(top, manifest.extents));
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
