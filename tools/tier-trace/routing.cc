#include "tools/tier-trace/routing.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "core/store/file.h"

namespace tierd {
namespace {

using nlohmann::json;

constexpr uint64_t kMostFileBytes = uint64_t{1} << 30;
constexpr uint32_t kMostExperts = 1u << 16;
constexpr uint32_t kMostLayers = 1u << 12;
constexpr int kDeepestJson = 4;

// Lines of a file, and where the present one is, for errors.
class Lines {
 public:
  Lines(std::string_view text, std::string path) : text_(text), path_(std::move(path)) {}

  bool next(std::string_view& line) {
    if (text_.empty()) return false;
    const size_t end = std::min(text_.find('\n'), text_.size());
    line = text_.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    text_.remove_prefix(std::min(end + 1, text_.size()));
    ++number_;
    return true;
  }
  Error error(const std::string& what) const {
    return {Code::corrupt, fmt::format("{}:{}", path_, number_), what};
  }

 private:
  std::string_view text_;
  std::string path_;
  uint64_t number_ = 0;
};

std::optional<uint64_t> number_in(std::string_view text) {
  uint64_t number = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (failed != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::vector<std::string_view> split(std::string_view line, char at) {
  std::vector<std::string_view> parts;
  while (true) {
    const size_t end = line.find(at);
    parts.push_back(line.substr(0, end));
    if (end == std::string_view::npos) return parts;
    line.remove_prefix(end + 1);
  }
}

// Sorted; an expert that is chosen twice is a mistake.
Status sort_experts(std::vector<uint32_t>& to, const Lines& lines) {
  std::sort(to.begin(), to.end());
  const auto twice = std::adjacent_find(to.begin(), to.end());
  if (twice == to.end()) return {};
  return lines.error(fmt::format("expert {} is chosen twice", *twice));
}

class CsvReader {
 public:
  CsvReader(Lines& lines, Routing& routing) : lines_(lines), routing_(routing) {}

  Status read() {
    std::string_view line;
    while (lines_.next(line)) {
      if (line.empty()) continue;
      if (line.front() == '#') {
        TIERD_TRY(read_comment(line));
      } else if (columns_.empty()) {
        TIERD_TRY(read_names(line));
      } else {
        TIERD_TRY(read_choice(line));
      }
    }
    if (columns_.empty()) return lines_.error("the line with the columns' names is missing");
    routing_.layers = layers_;
    routing_.expert_bytes.resize(layers_, 0);
    for (auto& [place, token] : tokens_) {
      token.second.resize(layers_);
      (token.first ? routing_.prompt : routing_.generated).push_back(std::move(token.second));
    }
    return {};
  }

 private:
  // "# layer=0 expert_bytes=4336640 …" and "# model=… n_expert=128 …"
  Status read_comment(std::string_view line) {
    std::optional<uint64_t> layer;
    for (const std::string_view word : split(line, ' ')) {
      const size_t is = word.find('=');
      if (is == std::string_view::npos) continue;
      const std::string_view key = word.substr(0, is), value = word.substr(is + 1);
      if (key == "model") routing_.model = std::string(value.substr(value.rfind('/') + 1));
      if (key != "layer" && key != "n_expert" && key != "expert_bytes") continue;
      const auto number = number_in(value);
      if (!number) return lines_.error(fmt::format("{} is '{}', expected a number", key, value));
      if (key == "layer") layer = number;
      if (key == "n_expert") {
        if (*number == 0 || *number > kMostExperts)
          return lines_.error(fmt::format("n_expert is {}, expected 1 to {}", *number, kMostExperts));
        routing_.experts = static_cast<uint32_t>(*number);
      }
      if (key == "expert_bytes" && layer) {
        if (*layer >= kMostLayers)
          return lines_.error(fmt::format("layer {}, expected less than {}", *layer, kMostLayers));
        if (routing_.expert_bytes.size() <= *layer) routing_.expert_bytes.resize(*layer + 1, 0);
        routing_.expert_bytes[*layer] = *number;
      }
    }
    return {};
  }

  Status read_names(std::string_view line) {
    columns_ = split(line, ',');
    for (const char* name : {"step", "layer", "expert"}) {
      if (!column(name)) return lines_.error(fmt::format("no column '{}' among: {}", name, line));
    }
    return {};
  }

  Status read_choice(std::string_view line) {
    const std::vector<std::string_view> fields = split(line, ',');
    if (fields.size() != columns_.size())
      return lines_.error(fmt::format("{} fields, there are {} columns", fields.size(), columns_.size()));
    const auto field = [&](const char* name, uint64_t most) -> Result<uint64_t> {
      const auto at = column(name);
      if (!at) return uint64_t{0};
      const auto number = number_in(fields[*at]);
      if (number && *number <= most) return *number;
      return lines_.error(fmt::format("{} is '{}', expected a number up to {}", name, fields[*at], most));
    };
    TIERD_ASSIGN(const uint64_t turn, field("turn", UINT32_MAX));
    TIERD_ASSIGN(const uint64_t step, field("step", UINT32_MAX));
    TIERD_ASSIGN(const uint64_t layer, field("layer", kMostLayers - 1));
    TIERD_ASSIGN(const uint64_t expert, field("expert", kMostExperts - 1));
    TIERD_ASSIGN(const uint64_t phase, field("phase", 1));
    auto& [is_prompt, token] = tokens_[{turn, step}];
    is_prompt = phase == 0 && column("phase");
    layers_ = std::max(layers_, static_cast<uint32_t>(layer) + 1);
    if (token.size() <= layer) token.resize(layer + 1);
    token[layer].push_back(static_cast<uint32_t>(expert));
    return sort_experts(token[layer], lines_);
  }

  std::optional<size_t> column(std::string_view name) const {
    const auto found = std::find(columns_.begin(), columns_.end(), name);
    if (found == columns_.end()) return std::nullopt;
    return static_cast<size_t>(found - columns_.begin());
  }

  Lines& lines_;
  Routing& routing_;
  std::vector<std::string_view> columns_;
  uint32_t layers_ = 0;
  // By turn and step: whether it is of the prompt, and what it chose.
  std::map<std::pair<uint64_t, uint64_t>, std::pair<bool, Routing::Token>> tokens_;
};

Status read_json_lines(Lines& lines, Routing& routing) {
  std::string_view line;
  while (lines.next(line)) {
    if (line.find_first_not_of(" \t") == std::string_view::npos) continue;
    const auto too_deep = [](int depth, json::parse_event_t, json&) { return depth <= kDeepestJson; };
    const json object = json::parse(line, too_deep, false);
    const auto found = object.is_object() ? object.find("layers") : object.end();
    if (!object.is_object() || found == object.end() || !found->is_array())
      return lines.error("expected a JSON object with a list \"layers\"");
    if (found->empty() || found->size() > kMostLayers)
      return lines.error(fmt::format("{} layers, expected 1 to {}", found->size(), kMostLayers));
    if (routing.layers == 0) routing.layers = static_cast<uint32_t>(found->size());
    if (found->size() != routing.layers)
      return lines.error(fmt::format("{} layers, the first line has {}", found->size(), routing.layers));
    Routing::Token& token = routing.generated.emplace_back();
    for (const json& layer : *found) {
      std::vector<uint32_t>& experts = token.emplace_back();
      if (!layer.is_array()) return lines.error("a layer is no list of experts");
      for (const json& expert : layer) {
        if (!expert.is_number_unsigned() || expert.get<uint64_t>() >= kMostExperts)
          return lines.error(
              fmt::format("an expert is {}, expected a number below {}", expert.dump(), kMostExperts));
        experts.push_back(expert.get<uint32_t>());
      }
      TIERD_TRY(sort_experts(experts, lines));
    }
  }
  routing.expert_bytes.assign(routing.layers, 0);
  return {};
}

uint32_t largest_expert(const Routing& routing) {
  uint32_t largest = 0;
  for (const auto* tokens : {&routing.prompt, &routing.generated}) {
    for (const Routing::Token& token : *tokens) {
      for (const auto& experts : token) {
        if (!experts.empty()) largest = std::max(largest, experts.back());
      }
    }
  }
  return largest;
}

}  // namespace

Result<Routing> read_routing(const std::string& path, uint32_t experts) {
  TIERD_ASSIGN(const std::string text, read_text_file(path, kMostFileBytes));
  Routing routing;
  Lines lines(text, path);
  if (text.starts_with('{')) {
    TIERD_TRY(read_json_lines(lines, routing));
  } else {
    TIERD_TRY(CsvReader(lines, routing).read());
  }
  if (routing.generated.empty())
    return Error{Code::corrupt, path,
                 "no token that was generated; what a prompt chose says nothing of caches"};
  const uint32_t largest = largest_expert(routing);
  if (experts != 0) routing.experts = experts;
  if (routing.experts == 0) routing.experts = largest + 1;
  if (largest >= routing.experts) {
    return Error{Code::corrupt, path,
                 fmt::format("expert {} was chosen, of {} that a layer has", largest, routing.experts)};
  }
  return routing;
}

}  // namespace tierd
