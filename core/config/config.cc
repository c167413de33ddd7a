#include "core/config/config.h"

#include <fmt/format.h>

#include <toml++/toml.h>
#include <algorithm>
#include <optional>
#include <ranges>
#include <variant>

#include "core/base/file.h"
#include "core/base/nearest.h"
#include "core/base/toml_text.h"
#include "core/config/keys.h"

namespace tierd {
namespace {

constexpr size_t kDeepestTable = 4;  // deeper than any key: tables below are not read
constexpr size_t kLongestTierName = 32;
constexpr size_t kMostTiers = 16;
constexpr const char* kCommandLine = "--set";
constexpr std::string_view kCacheOfTier = ".cache";  // appended to a tier's table

// Former keys, each with the program that has taken it over.
constexpr std::pair<std::string_view, std::string_view> kElsewhere[] = {
    {"run.activity", "tier reproduce plays drawn activity: activity = \"NAME\" in a run of its file"},
    {"run.drawn", "tier reproduce plays drawn activity: draws = \"states\" in a run of its file"},
    {"plan.sparsity", "tier plan --sparsity X"},
    {"plan.hits", "tier plan --hits X"},
    {"plan.similarity", "tier plan --similarity X"},
    {"plan.least_gain", "tier plan --least-gain X"},
};

std::string suggestion(std::string_view unknown) {
  std::vector<std::string_view> known;
  for (const Key& key : kKeys) known.push_back(key.path);
  std::vector<std::string> of_tiers;
  const Config defaults;
  // Memories first: more keys apply to them than to the store's tier.
  for (auto tier = defaults.tiers.rbegin(); tier != defaults.tiers.rend(); ++tier) {
    for (const TierKey& key : kTierKeys) of_tiers.push_back(fmt::format("{}.{}", tier->table(), key.path));
  }
  known.insert(known.end(), of_tiers.begin(), of_tiers.end());
  const std::string_view meant = nearest(unknown, known);
  return meant.empty() ? "" : fmt::format("; did you mean '{}'?", meant);
}

// Restricts tier names so that "dram.0" and paths of the API are unambiguous.
bool is_tier_name(std::string_view name) {
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  const auto follows = [&](char c) { return letter(c) || (c >= '0' && c <= '9') || c == '-' || c == '_'; };
  return !name.empty() && name.size() <= kLongestTierName && letter(name.front()) &&
         std::ranges::all_of(name, follows);
}

// A table that names a plugin; keys of it that are not declared here are the plugin's parameters.
struct PluginTable {
  std::string_view named_at;  // its key with the plugin's name; empty for [codec]
  std::string* name = nullptr;
  std::vector<Setting>* settings = nullptr;
};

std::optional<PluginTable> plugin_table(Config& config, std::string_view table) {
  const auto strategy = [](StrategyConfig& of) { return PluginTable{"name", &of.name, &of.settings}; };
  if (table == "predictor") return strategy(config.predictor);
  if (table == "quantizer") return strategy(config.quantizer);
  if (table == "cache") return strategy(config.cache);
  if (table == "balancer") return strategy(config.balancer);
  if (table == "heat") return strategy(config.heat);
  if (table == "codec") return PluginTable{{}, &config.compression, &config.codec};
  if (!table.starts_with(kTiers)) return std::nullopt;
  table.remove_prefix(kTiers.size());
  const bool of_cache = table.ends_with(kCacheOfTier);
  if (of_cache) table.remove_suffix(kCacheOfTier.size());
  if (!is_tier_name(table)) return std::nullopt;
  TierConfig& tier = config.tier(table);
  return of_cache ? strategy(tier.cache) : PluginTable{"kind", &tier.kind, &tier.settings};
}

// The parts of a tier's key, such as "tiers.dram.count" or "tiers.dram.cache.name".
struct TierPath {
  std::string_view tier;
  std::string_view key;
};
std::optional<TierPath> tier_path(std::string_view path) {
  if (!path.starts_with(kTiers)) return std::nullopt;
  path.remove_prefix(kTiers.size());
  const size_t dot = path.find('.');
  if (dot == std::string_view::npos) return std::nullopt;
  const std::string_view key = path.substr(dot + 1);
  const size_t deeper = key.find('.');
  const bool of_cache = deeper != std::string_view::npos && path.substr(dot, deeper + 1) == kCacheOfTier;
  if (deeper != std::string_view::npos && (!of_cache || key.find('.', deeper + 1) != std::string_view::npos))
    return std::nullopt;
  return TierPath{path.substr(0, dot), key};
}

constexpr size_t kMostErrors = 20;  // errors that are reported

class Reader {
 public:
  explicit Reader(Config& config) : config_(config) {}

  void read(const toml::table& table, const std::string& file, const std::string& prefix = "",
            size_t depth = 0) {
    for (const auto& [name, node] : table) {
      const std::string path = prefix + std::string(name.str());
      const std::string origin =
          file.empty() ? kCommandLine
                       : fmt::format("{}:{}", file, static_cast<size_t>(name.source().begin.line));
      if (const toml::table* inner = node.as_table(); inner != nullptr && depth < kDeepestTable) {
        read(*inner, file, path + ".", depth + 1);
      } else {
        set(path, node, origin);
      }
    }
  }
  void add(std::string line) {
    ++n_errors_;
    if (errors_.size() < kMostErrors) errors_.push_back(std::move(line));
  }

  Status status() const {
    if (errors_.empty()) return {};
    std::vector<std::string> more(errors_.begin() + 1, errors_.end());
    if (n_errors_ > errors_.size()) more.push_back(fmt::format("and {} more", n_errors_ - errors_.size()));
    return Error{Code::invalid_argument, "", errors_.front(), std::move(more)};
  }

 private:
  void set(const std::string& path, const toml::node& node, const std::string& origin) {
    if (const std::optional<TierPath> of = tier_path(path)) return set(*of, path, node, origin);
    const auto key = std::find_if(kKeys.begin(), kKeys.end(), [&](const Key& k) { return k.path == path; });
    if (key != kKeys.end()) {
      config_.given[path] = origin;
      return set(*key, config_, path, node, origin);
    }
    if (!keep_setting(path, node, origin)) refuse(path, origin);
  }

  void set(const TierPath& of, const std::string& path, const toml::node& node, const std::string& origin) {
    if (!is_tier_name(of.tier))
      return add(fmt::format("{}: '{}': a tier's name begins with a letter and has letters, digits, - and _",
                             origin, path));
    if (config_.find_tier(of.tier) == nullptr && config_.tiers.size() == kMostTiers)
      return add(
          fmt::format("{}: '{}' is one tier more than the {} that there can be", origin, path, kMostTiers));
    const auto key = std::ranges::find(kTierKeys, of.key, &TierKey::path);
    if (key != kTierKeys.end()) return set(*key, config_.tier(of.tier), path, node, origin);
    if (!keep_setting(path, node, origin)) refuse(path, origin);
  }

  void refuse(const std::string& path, const std::string& origin) {
    for (const auto& [key, where] : kElsewhere) {
      if (path == key) return add(fmt::format("{}: '{}' is not a key of a run; {}", origin, path, where));
    }
    add(fmt::format("{}: unknown key '{}'{}", origin, path, suggestion(path)));
  }

  template <class In>
  void set(const KeyOf<In>& key, In& in, const std::string& path, const toml::node& node,
           const std::string& origin) {
    if (origin == kCommandLine) forget_settings(path, node);
    const auto expected = [&](std::string_view what) {
      add(fmt::format("{}: '{}' must be {}", origin, path, what));
    };
    std::visit(
        [&](auto place) {
          using T = std::remove_reference_t<decltype(place(in))>;
          if constexpr (std::is_same_v<T, bool>) {
            if (const auto value = node.value_exact<bool>()) {
              place(in) = *value;
            } else {
              expected("true or false");
            }
          } else if constexpr (std::is_same_v<T, std::string>) {
            // A size may be "64 MiB" or 67108864.
            std::string text;
            if (const auto value = node.value_exact<std::string>()) {
              text = *value;
            } else if (const auto number = node.value_exact<int64_t>()) {
              text = std::to_string(*number);
            } else {
              return expected("a string");
            }
            if (!key.choices.empty() && !one_of(key.choices, text)) {
              return add(
                  fmt::format("{}: '{}' is '{}', expected one of {}", origin, path, text, key.choices));
            }
            place(in) = std::move(text);
          } else {
            const auto value = node.value_exact<int64_t>();
            if (!value || *value < 0 || static_cast<uint64_t>(*value) > std::numeric_limits<T>::max()) {
              return expected("a whole number, not negative");
            }
            place(in) = static_cast<T>(*value);
          }
        },
        key.field);
  }

  // Drops the file's parameters of a plugin if --set replaces the plugin by another one.
  void forget_settings(std::string_view path, const toml::node& name) {
    const size_t dot = path.rfind('.');
    const bool of_codec = path == "model.compression";
    const std::optional<PluginTable> table = plugin_table(config_, of_codec ? "codec" : path.substr(0, dot));
    if (!table || (!of_codec && path.substr(dot + 1) != table->named_at)) return;
    if (name.value_or(std::string_view()) == *table->name) return;
    std::erase_if(*table->settings, [](const Setting& setting) { return setting.origin != kCommandLine; });
  }

  // Stores a key below a plugin's table as its parameter. Returns false for any other key.
  bool keep_setting(const std::string& path, const toml::node& node, const std::string& origin) {
    const size_t dot = path.rfind('.');
    if (dot == std::string::npos) return false;
    const std::optional<PluginTable> table = plugin_table(config_, std::string_view(path).substr(0, dot));
    if (!table) return false;
    Setting setting{path.substr(dot + 1), {}, origin};
    if (const auto whole = node.value_exact<int64_t>()) {
      setting.value = *whole;
    } else if (const auto number = node.value_exact<double>()) {
      setting.value = *number;
    } else if (const auto flag = node.value_exact<bool>()) {
      setting.value = *flag;
    } else if (auto text = node.value_exact<std::string>()) {
      setting.value = std::move(*text);
    } else {
      add(fmt::format("{}: '{}' must be a number, true, false or a string", origin, path));
      return true;
    }
    std::erase_if(*table->settings, [&](const Setting& old) { return old.key == setting.key; });
    table->settings->push_back(std::move(setting));
    return true;
  }

  static bool one_of(std::string_view choices, std::string_view text) {
    while (!choices.empty()) {
      const size_t bar = std::min(choices.find('|'), choices.size());
      if (choices.substr(0, bar) == text) return true;
      choices.remove_prefix(std::min(bar + 1, choices.size()));
    }
    return false;
  }

  Config& config_;
  size_t n_errors_ = 0;
  std::vector<std::string> errors_;  // the first of them
};

}  // namespace

Result<Config> load_config(const std::string& file, const std::vector<std::string>& overrides) {
  Config config;
  Reader reader(config);
  if (!file.empty()) {
    TIERD_ASSIGN(const std::string text, read_file_or_pipe(file));
    TIERD_ASSIGN(const toml::table table, parse_toml(text, file));
    reader.read(table, file);
  }
  for (const std::string& line : overrides) {
    const size_t equals = line.find('=');
    if (equals == std::string::npos) {
      reader.add(fmt::format("--set {}: expected key=value", line));
      continue;
    }
    // Accepts a bare word without quotes.
    auto table = parse_toml(std::string_view(line), "--set");
    if (!table.ok()) {
      std::string quoted = line.substr(0, equals) + "=\"";
      for (const char c : line.substr(equals + 1))
        quoted += (c == '"' || c == '\\') ? std::string("\\") + c : std::string(1, c);
      table = parse_toml(quoted + "\"", "--set");
    }
    if (!table.ok()) {
      reader.add(table.error().line());
      continue;
    }
    reader.read(*table, "");
  }
  TIERD_TRY(reader.status());
  return config;
}

std::vector<std::string> changed_keys(const Config& before, const Config& after) {
  Config a = before, b = after;
  std::vector<std::string> changed;
  const auto compare = [&](const auto& key, auto& was, auto& is, const std::string& path) {
    if (!std::visit([&](auto place) { return place(was) == place(is); }, key.field)) changed.push_back(path);
  };
  for (const Key& key : kKeys) compare(key, a, b, std::string(key.path));
  std::vector<std::string> tables;
  for (const TierConfig& tier : std::vector(b.tiers)) {
    tables.push_back(tier.table());
    tables.push_back(tier.table() + std::string(kCacheOfTier));
    for (const TierKey& key : kTierKeys)
      compare(key, a.tier(tier.name), b.tier(tier.name), fmt::format("{}.{}", tier.table(), key.path));
  }
  for (const TierConfig& tier : a.tiers) {
    if (b.find_tier(tier.name) == nullptr) changed.push_back(tier.table());
  }
  for (const char* kind : {"predictor", "quantizer", "cache", "balancer", "heat", "codec"})
    tables.emplace_back(kind);
  for (const std::string& table : tables) {
    const std::vector<Setting>& was = *plugin_table(a, table)->settings;
    const std::vector<Setting>& is = *plugin_table(b, table)->settings;
    const auto tell = [&](const std::vector<Setting>& these, const std::vector<Setting>& others, bool lost) {
      for (const Setting& setting : these) {
        const auto other = std::find_if(others.begin(), others.end(),
                                        [&](const Setting& s) { return s.key == setting.key; });
        const bool told = other == others.end() || (!lost && other->value != setting.value);
        if (told) changed.push_back(table + "." + setting.key);
      }
    };
    tell(is, was, false);
    tell(was, is, true);
  }
  return changed;
}

TierConfig& Config::tier(std::string_view name) {
  const auto found = std::ranges::find(tiers, name, &TierConfig::name);
  return found != tiers.end() ? *found : tiers.emplace_back(TierConfig{.name = std::string(name)});
}

const TierConfig* Config::find_tier(std::string_view name) const {
  const auto found = std::ranges::find(tiers, name, &TierConfig::name);
  return found != tiers.end() ? &*found : nullptr;
}

std::string config_manual() {
  std::string text;
  const auto tell = [&](const auto& key, auto defaults, const std::string& path) {
    const std::string value = std::visit(
        [&](auto place) {
          using T = std::remove_reference_t<decltype(place(defaults))>;
          if constexpr (std::is_same_v<T, std::string>) {
            return fmt::format("\"{}\"", place(defaults));
          } else {
            return fmt::format("{}", place(defaults));
          }
        },
        key.field);
    text += fmt::format("  {:<22} {:<14} {}{}\n", path, value, key.help,
                        key.choices.empty() ? "" : fmt::format(" ({})", key.choices));
  };
  for (const Key& key : kKeys) tell(key, Config(), std::string(key.path));
  for (const TierKey& key : kTierKeys) tell(key, TierConfig(), fmt::format("tiers.NAME.{}", key.path));
  return text;
}

}  // namespace tierd
