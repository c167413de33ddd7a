#include "tools/tierd/hub/choice.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <span>
#include <string_view>

namespace tierd {
namespace {

// Parts of the names of GGUF files that are no models: projectors, statistics, drafts.
constexpr std::array<std::string_view, 6> kNoModels = {"mmproj",  "imatrix", "mtp-",
                                                       "eagle3-", "dflash-", "dspark-"};
constexpr std::array<std::string_view, 2> kUsualQuants = {"Q4_K_M", "Q8_0"};
// Files beside the weights that the reader of a Hugging Face folder opens.
constexpr std::array<std::string_view, 12> kBesideWeights = {
    "config.json",         "generation_config.json",  "tokenizer.json",
    "tokenizer.model",     "tokenizer_config.json",   "vocab.json",
    "merges.txt",          "special_tokens_map.json", "added_tokens.json",
    "chat_template.jinja", "chat_template.json",      "additional_chat_templates/tool_use.jinja"};
constexpr std::string_view kWholeWeights = "model.safetensors";
constexpr std::string_view kWeightIndex = "model.safetensors.index.json";
constexpr size_t kMostNamesShown = 20;

std::string in_small_letters(std::string_view text) {
  std::string small(text);
  std::ranges::transform(small, small.begin(), [](unsigned char c) { return std::tolower(c); });
  return small;
}

// The parts of NAME-00002-of-00003.ENDING.
struct Shard {
  std::string_view stem;
  uint32_t number = 1;
  uint32_t count = 1;
};
Shard shard_of(std::string_view name, std::string_view ending) {
  name.remove_suffix(ending.size());
  constexpr std::string_view kForm = "-00001-of-00002";
  Shard shard;
  shard.stem = name;
  if (name.size() <= kForm.size()) return shard;
  const std::string_view tail = name.substr(name.size() - kForm.size());
  if (tail[0] != '-' || tail.substr(6, 4) != "-of-") return shard;
  const auto read = [](std::string_view digits, uint32_t& number) {
    const char* const end = digits.data() + digits.size();
    const auto parsed = std::from_chars(digits.data(), end, number);
    return parsed.ec == std::errc() && parsed.ptr == end && number > 0;
  };
  uint32_t number = 0, count = 0;
  if (!read(tail.substr(1, 5), number) || !read(tail.substr(10), count) || number > count) return shard;
  return {name.substr(0, name.size() - kForm.size()), number, count};
}

constexpr std::string_view kGguf = ".gguf";

bool is_gguf_model(const std::string& name) {
  if (!name.ends_with(kGguf)) return false;
  const std::string file = in_small_letters(name.substr(name.rfind('/') + 1));
  return std::ranges::none_of(kNoModels,
                              [&](std::string_view other) { return file.find(other) != std::string::npos; });
}

// Returns whether a name contains the quant and a separator follows it. `apart`: nor may a letter precede it
// (IQ4_XS).
bool has_quant(const std::string& name, std::string_view quant, bool apart) {
  const std::string in = in_small_letters(name), sought = in_small_letters(quant);
  for (size_t at = in.find(sought); at != std::string::npos; at = in.find(sought, at + 1)) {
    const size_t end = at + sought.size();
    const bool ends = end < in.size() && std::string_view(".-/").find(in[end]) != std::string_view::npos;
    const bool begins = at == 0 || std::isalnum(static_cast<unsigned char>(in[at - 1])) == 0;
    if (ends && (begins || !apart)) return true;
  }
  return false;
}

// Returns the first of `models` that has the quant, or NULL.
const std::string* of_quant(std::span<const std::string> models, std::string_view quant) {
  for (const bool apart : {true, false}) {
    const auto found =
        std::ranges::find_if(models, [&](const std::string& name) { return has_quant(name, quant, apart); });
    if (found != models.end()) return &*found;
  }
  return nullptr;
}

std::string shown(std::span<const std::string> names) {
  const size_t most = std::min(names.size(), kMostNamesShown);
  return fmt::format("{}{}", fmt::join(names.first(most), ", "),
                     most < names.size() ? fmt::format(" and {} more", names.size() - most) : "");
}

// Returns the file with the other shards of its model. The first shard is the file to open.
Result<HubChoice> with_shards(const std::vector<std::string>& names, const std::string& chosen, bool certain,
                              const std::string& origin) {
  HubChoice choice{chosen, {chosen}, certain};
  if (!chosen.ends_with(kGguf)) return choice;
  const Shard shard = shard_of(chosen, kGguf);
  if (shard.count == 1) return choice;
  choice.files.clear();
  for (uint32_t i = 1; i <= shard.count; ++i) {
    std::string part = fmt::format("{}-{:05}-of-{:05}.gguf", shard.stem, i, shard.count);
    if (!std::ranges::binary_search(names, part)) {
      return Error{
          Code::not_found, origin,
          fmt::format("there is no {}, which belongs to the same model as the shard {}", part, chosen)};
    }
    choice.files.push_back(std::move(part));
  }
  choice.model = choice.files.front();
  // The file to open is downloaded last: where it exists, all shards do.
  std::rotate(choice.files.begin(), choice.files.begin() + 1, choice.files.end());
  return choice;
}

Result<HubChoice> choose_folder(const std::vector<std::string>& names, const HubRequest& request,
                                const std::string& origin) {
  const auto has = [&](std::string_view name) { return std::ranges::binary_search(names, name); };
  const bool whole = has(kWholeWeights);
  if (!has("config.json") || (!whole && !has(kWeightIndex))) {
    return Error{Code::not_found, origin,
                 fmt::format("expected a GGUF file, or config.json with {}; found {}", kWholeWeights,
                             names.empty() ? "nothing" : shown(names))};
  }
  if (!request.quant.empty()) {
    return Error{
        Code::not_found, origin,
        fmt::format(
            "there is no GGUF file, so no quant '{}'; leave out the quant to use the safetensors files",
            request.quant)};
  }
  HubChoice choice;
  choice.certain = has("tokenizer.json") || has("tokenizer.model") || has("merges.txt");
  for (const std::string_view name : kBesideWeights) {
    if (has(name)) choice.files.emplace_back(name);
  }
  if (whole) {
    choice.files.emplace_back(kWholeWeights);
    return choice;
  }
  constexpr std::string_view kEnding = ".safetensors";
  choice.files.emplace_back(kWeightIndex);
  uint32_t found = 0, count = 0;
  for (const std::string& name : names) {
    if (!name.starts_with("model-") || !name.ends_with(kEnding)) continue;
    const Shard shard = shard_of(name, kEnding);
    if (shard.stem != "model") continue;
    count = std::max(count, shard.count);
    ++found;
    choice.files.push_back(name);
  }
  if (found == 0 || found != count) {
    return Error{Code::not_found, origin,
                 fmt::format("found {} of the {} shards that {} names", found, count, kWeightIndex)};
  }
  return choice;
}

}  // namespace

Result<HubChoice> choose_files(std::vector<std::string> names, const HubRequest& request,
                               const std::string& origin) {
  std::ranges::sort(names);
  if (!request.file.empty()) {
    if (std::ranges::binary_search(names, request.file))
      return with_shards(names, request.file, true, origin);
    return Error{Code::not_found, origin,
                 fmt::format("there is no file '{}'; found {}", request.file,
                             names.empty() ? "nothing" : shown(names))};
  }
  std::vector<std::string> models;
  std::ranges::copy_if(names, std::back_inserter(models), is_gguf_model);
  if (models.empty()) return choose_folder(names, request, origin);
  if (!request.quant.empty()) {
    if (const std::string* const found = of_quant(models, request.quant))
      return with_shards(names, *found, true, origin);
    return Error{Code::not_found, origin,
                 fmt::format("there is no GGUF file of quant '{}'; found {}", request.quant, shown(models))};
  }
  for (const std::string_view quant : kUsualQuants) {
    if (const std::string* const found = of_quant(models, quant))
      return with_shards(names, *found, quant == kUsualQuants.front(), origin);
  }
  return with_shards(names, models.front(), false, origin);
}

}  // namespace tierd
