#include "tools/lab/activity/routing.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>

#include "core/base/file.h"

namespace tierd {
namespace {

using nlohmann::json;

constexpr uint64_t kMostFileBytes = uint64_t{1} << 30;
constexpr uint32_t kMostExperts = 1u << 16;
constexpr uint32_t kMostLayers = 1u << 12;
// The most experts of all layers, beside one for each byte of the file. Models have up to some 30,000, and
// tables are allocated for them.
constexpr uint64_t kMostExpertsOfAll = 1u << 18;
constexpr int kDeepestJson = 4;

// The lines of a file, and the number of the current one for errors.
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
  uint32_t number() const { return number_; }
  Error error(const std::string& what) const { return error_at(number_, what); }
  Error error_at(uint32_t number, const std::string& what) const {
    return {Code::corrupt, fmt::format("{}:{}", path_, number), what};
  }

 private:
  std::string_view text_;
  std::string path_;
  uint32_t number_ = 0;  // a file has fewer than 2^32 bytes
};

// The largest number of its kind, and the first line that contains it.
struct Largest {
  uint32_t number = 0;
  uint32_t line = 0;

  void see(uint32_t other, uint32_t at) {
    if (line == 0 || other > number) *this = {other, at};
  }
};
struct Reach {
  Largest layer;
  Largest expert;
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

// A row of the table.
struct Chosen {
  uint32_t turn, step;
  uint16_t layer, expert;
  bool is_prompt;
  uint32_t line;

  auto token() const { return std::pair(turn, step); }
  auto key() const { return std::tuple(turn, step, layer, expert, line); }
};

class CsvReader {
 public:
  CsvReader(Lines& lines, Routing& routing, Reach& reach) : lines_(lines), routing_(routing), reach_(reach) {}

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
    if (!chosen_.empty()) routing_.layers = reach_.layer.number + 1;
    routing_.expert_bytes.resize(routing_.layers, 0);
    std::sort(chosen_.begin(), chosen_.end(),
              [](const Chosen& a, const Chosen& b) { return a.key() < b.key(); });
    TIERD_TRY(check_chosen());
    make_tokens();
    return {};
  }

 private:
  // Reports the first line that is wrong.
  Status check_chosen() const {
    const Chosen* wrong = nullptr;
    bool twice = false;
    for (size_t i = 1; i < chosen_.size(); ++i) {
      const Chosen &before = chosen_[i - 1], &here = chosen_[i];
      if (before.token() != here.token()) continue;
      const bool same = before.layer == here.layer && before.expert == here.expert;
      if (!same && before.is_prompt == here.is_prompt) continue;
      const Chosen& later = before.line > here.line ? before : here;
      if (wrong != nullptr && wrong->line <= later.line) continue;
      wrong = &later;
      twice = same;
    }
    if (wrong == nullptr) return {};
    return lines_.error_at(
        wrong->line, twice ? fmt::format("expert {} is chosen twice", wrong->expert)
                           : fmt::format("phase is {}, another line of turn {} and step {} has the other one",
                                         wrong->is_prompt ? 0 : 1, wrong->turn, wrong->step));
  }

  void make_tokens() {
    Routing::Token* token = nullptr;
    for (size_t i = 0; i < chosen_.size(); ++i) {
      const Chosen& here = chosen_[i];
      if (i == 0 || chosen_[i - 1].token() != here.token())
        token = &(here.is_prompt ? routing_.prompt : routing_.generated).emplace_back();
      if (token->empty() || token->back().layer != here.layer) token->push_back({here.layer, {}});
      token->back().experts.push_back(here.expert);
    }
  }

  // Parses "# layer=0 expert_bytes=4336640 …" and "# model=… n_expert=128 …".
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
        if (*number > kMostExpertBytes)
          return lines_.error(
              fmt::format("expert_bytes is {}, expected at most {}", *number, kMostExpertBytes));
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
      return lines_.error(
          fmt::format("{} fields, expected one for each of {} columns", fields.size(), columns_.size()));
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
    Chosen chosen;
    chosen.turn = static_cast<uint32_t>(turn);
    chosen.step = static_cast<uint32_t>(step);
    chosen.layer = static_cast<uint16_t>(layer);
    chosen.expert = static_cast<uint16_t>(expert);
    chosen.is_prompt = phase == 0 && column("phase");
    chosen.line = lines_.number();
    chosen_.push_back(chosen);
    reach_.layer.see(chosen.layer, chosen.line);
    reach_.expert.see(chosen.expert, chosen.line);
    return {};
  }

  std::optional<size_t> column(std::string_view name) const {
    const auto found = std::find(columns_.begin(), columns_.end(), name);
    if (found == columns_.end()) return std::nullopt;
    return static_cast<size_t>(found - columns_.begin());
  }

  Lines& lines_;
  Routing& routing_;
  Reach& reach_;
  std::vector<std::string_view> columns_;
  std::vector<Chosen> chosen_;
};

Result<std::vector<uint32_t>> read_experts(const json& list, const Lines& lines) {
  if (!list.is_array()) return lines.error("a layer is not a list of experts");
  std::vector<uint32_t> experts;
  experts.reserve(list.size());
  for (const json& expert : list) {
    if (!expert.is_number_unsigned() || expert.get<uint64_t>() >= kMostExperts)
      return lines.error(
          fmt::format("an expert is {}, expected a number below {}", expert.dump(), kMostExperts));
    experts.push_back(expert.get<uint32_t>());
  }
  std::sort(experts.begin(), experts.end());
  const auto twice = std::adjacent_find(experts.begin(), experts.end());
  if (twice != experts.end()) return lines.error(fmt::format("expert {} is chosen twice", *twice));
  return experts;
}

Status read_json_lines(Lines& lines, Routing& routing, Reach& reach) {
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
      return lines.error(
          fmt::format("{} layers, expected {} as in the first line", found->size(), routing.layers));
    Routing::Token& token = routing.generated.emplace_back();
    for (uint32_t layer = 0; layer < routing.layers; ++layer) {
      TIERD_ASSIGN(std::vector<uint32_t> experts, read_experts((*found)[layer], lines));
      reach.layer.see(layer, lines.number());
      if (experts.empty()) continue;
      reach.expert.see(experts.back(), lines.number());
      token.push_back({layer, std::move(experts)});
    }
  }
  routing.expert_bytes.assign(routing.layers, 0);
  return {};
}

}  // namespace

Result<Routing> read_routing(const std::string& path, uint32_t experts) {
  TIERD_ASSIGN(const std::string text, read_whole_file(path, kMostFileBytes));
  Routing routing;
  Lines lines(text, path);
  Reach reach;
  if (text.starts_with('{')) {
    TIERD_TRY(read_json_lines(lines, routing, reach));
  } else {
    TIERD_TRY(CsvReader(lines, routing, reach).read());
  }
  if (routing.generated.empty())
    return Error{Code::corrupt, path,
                 "has no generated token; the experts of a prompt do not show what caches keep"};
  const Largest& largest = reach.expert;
  if (experts != 0) routing.experts = experts;
  if (routing.experts == 0) routing.experts = largest.number + 1;
  if (largest.number >= routing.experts) {
    return lines.error_at(largest.line,
                          fmt::format("expert {} was chosen, expected a number below the {} of a layer",
                                      largest.number, routing.experts));
  }
  const uint64_t all = uint64_t{routing.layers} * routing.experts;
  const uint64_t most = kMostExpertsOfAll + text.size();
  if (all > most) {
    return lines.error_at(
        reach.layer.line,
        fmt::format("layer {} of {} experts: {} layers have {} experts, expected at most "
                    "{} in a file of {} bytes",
                    reach.layer.number, routing.experts, routing.layers, all, most, text.size()));
  }
  return routing;
}

}  // namespace tierd
