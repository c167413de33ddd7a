#include "core/config/config.h"

#include <fmt/format.h>

#include <toml++/toml.h>
#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <variant>

#include "core/base/nearest.h"

namespace tierd {
namespace {

// Where a value lies in a Config.
template <class T>
using Place = T& (*)(Config&);
using Field = std::variant<Place<std::string>, Place<uint32_t>, Place<uint64_t>, Place<double>, Place<bool>>;

template <auto Member>
constexpr auto at() {
  return +[](Config & config) -> auto& {
    return config.*Member;
  };
}
template <auto Table, auto Member>
constexpr auto at() {
  return +[](Config & config) -> auto& {
    return config.*Table.*Member;
  };
}

struct Key {
  std::string_view path;
  Field field;
  std::string_view choices;  // "a|b", or empty: anything of the type
  std::string_view help;
};

const std::array kKeys = {
    Key{"model.path", at<&Config::model>(), "",
        "GGUF file, Hugging Face folder, llama2.c checkpoint or store (-m)"},
    Key{"model.tokenizer", at<&Config::tokenizer>(), "", "a tokenizer to use instead of the model's"},
    Key{"model.layout", at<&Config::layout>(), "row|neuron|channel-group",
        "how a model that is no store is cut: neuron bundles rows and columns of the FFN, channel-group "
        "takes "
        "every matrix by its input channels"},
    Key{"model.layer_group", at<&Config::layer_group>(), "",
        "of layout channel-group: of so many layers the channels of one number lie side by side"},
    Key{"model.encoding", at<&Config::encoding>(), "source|f32|f16|bf16|q8_0|q4_0|q4_k|q5_k|q6_k",
        "of the matrices; another than the source's may lose something, which the store says"},
    Key{"model.head_encoding", at<&Config::head_encoding>(),
        "same|source|f32|f16|bf16|q8_0|q4_0|q4_k|q5_k|q6_k",
        "of embedding and head: the same, or one of their own"},
    Key{"model.bundling", at<&Config::bundling>(), "row-column|none",
        "of layout neuron: rows and column of a neuron side by side, or, to compare, apart"},
    Key{"run.threads", at<&Config::threads>(), "", "compute workers, 0 is one a core (-t)"},
    Key{"run.context", at<&Config::context>(), "",
        "positions of each sequence, 0 is the model's but at most 4096 (-c)"},
    Key{"run.sequences", at<&Config::sequences>(), "", "texts that are continued at once (-np)"},
    Key{"run.ubatch", at<&Config::ubatch>(), "", "most tokens of a prefill chunk (--ub)"},
    Key{"run.kv", at<&Config::kv>(), "f16|f32", "encoding of the KV cache"},
    Key{"run.seed", at<&Config::seed>(), "", "of sampling and of strategies that draw lots (-s)"},
    Key{"run.bind", at<&Config::bind>(), "", "bind compute workers to cores"},
    Key{"run.dense", at<&Config::dense>(), "",
        "the unit that runs the dense segments: dram.1 is the second of tiers.dram.units; the first if "
        "empty"},
    Key{"run.attention", at<&Config::attention>(), "",
        "who has the KV cache and attends: dram.1, or dram for all units, by heads; the dense unit if empty"},
    Key{"run.clock", at<&Config::clock>(), "wall|model",
        "model: virtual time, in which all takes as long as the described machine would"},
    Key{"run.execute", at<&Config::execute>(), "real|trace",
        "with the modelled clock, trace: nothing is read or computed, for its time alone"},
    Key{"run.machine", at<&Config::machine>(), "",
        "description for the modelled clock, a file or its name in configs/hardware; tier-calibrate writes "
        "one"},
    Key{"run.trace", at<&Config::trace>(), "", "record what the kernel does in this file (--trace)"},
    Key{"run.timeline", at<&Config::timeline>(), "",
        "write when what happened to this file, as Chrome trace events (--timeline)"},
    Key{"compute.activations", at<&Config::activations>(), "int8|f32",
        "what block-encoded weights are multiplied with; int8 is lossy and reports its error"},
    Key{"compute.kernels", at<&Config::kernels>(), "auto|avx512-vnni|avx2|scalar", "instruction set"},
    Key{"tiers.flash.agent", at<&Config::flash, &TierConfig::agent>(), "", "who reads the store"},
    Key{"tiers.flash.thread", at<&Config::flash, &TierConfig::thread>(), "kernel|own",
        "who drives the agent"},
    Key{"tiers.flash.core", at<&Config::flash, &TierConfig::core>(), "",
        "the core of its own thread; empty leaves it free"},
    Key{"tiers.dram.agent", at<&Config::dram, &TierConfig::agent>(), "",
        "who holds the weights and computes"},
    Key{"tiers.dram.units", at<&Config::dram_units>(), "",
        "agents that share the tier and its work, as the balancer deals it out"},
    Key{"tiers.dram.capacity", at<&Config::dram_capacity>(), "",
        "all, a share of the tensor bytes (50%) or a size"},
    Key{"tiers.dram.staging", at<&Config::dram_staging>(), "", "most that streaming bytes may occupy"},
    Key{"tiers.dram.thread", at<&Config::dram, &TierConfig::thread>(), "kernel|own", "who drives the agent"},
    Key{"tiers.dram.core", at<&Config::dram, &TierConfig::core>(), "",
        "the core of its own thread; empty leaves it free"},
    Key{"pressure.source", at<&Config::pressure, &PressureConfig::source>(), "off|psi|cgroup",
        "who tells that memory is short, so that the DRAM tier shrinks until it is not: psi, what tasks wait "
        "for memory; cgroup, what is used of the memory cgroup's limit"},
    Key{"pressure.stall_ms", at<&Config::pressure, &PressureConfig::stall_ms>(), "",
        "of psi: so much waiting within a window is pressure; 1 to pressure.window_ms"},
    Key{"pressure.window_ms", at<&Config::pressure, &PressureConfig::window_ms>(), "",
        "of psi; and the least time between two steps down; 500 to 10000, without privileges a multiple of "
        "2000"},
    Key{"pressure.limit_percent", at<&Config::pressure, &PressureConfig::limit_percent>(), "",
        "of cgroup: more of the limit in use is pressure, idle pages of files aside; 1 to 99"},
    Key{"pressure.step", at<&Config::pressure, &PressureConfig::step>(), "",
        "what the tier gives back, or takes again, at once; as tiers.dram.capacity"},
    Key{"pressure.least", at<&Config::pressure, &PressureConfig::least>(), "",
        "the capacity that it keeps in any case; as tiers.dram.capacity"},
    Key{"pressure.calm_ms", at<&Config::pressure, &PressureConfig::calm_ms>(), "",
        "after so long without pressure it grows by a step, up to tiers.dram.capacity; 1 to 86400000"},
    Key{"plan.sparsity", at<&Config::plan, &PlanConfig::sparsity>(), "",
        "of --plan: the share of the channels that is left out; 0: what the budget asks for"},
    Key{"plan.hits", at<&Config::plan, &PlanConfig::hits>(), "",
        "of --plan: the share of the used channels that the cache has; 0: the share of all that it holds"},
    Key{"plan.similarity", at<&Config::plan, &PlanConfig::similarity>(), "",
        "of --plan: the share of the used channels that the layers before foretell; 0: as the predictor's "
        "tables say, else the paper's 0.8"},
    Key{"plan.least_gain", at<&Config::plan, &PlanConfig::least_gain>(), "",
        "of --plan: groups grow until another layer wins less than this share"},
    Key{"plugins.path", at<&Config::plugin_path>(), "",
        "folders with plugins, divided by ':' (--plugin-path, TIERD_PLUGIN_PATH)"},
    Key{"plugins.deadline_ms", at<&Config::plugin_deadline_ms>(), "",
        "a plugin whose call takes longer is not asked again"},
    Key{"predictor.name", at<&Config::predictor, &StrategyConfig::name>(), "", "which neurons are active"},
    Key{"predictor.fallback", at<&Config::predictor, &StrategyConfig::fallback>(), "",
        "what takes its place when it fails; empty: requests fail from then on"},
    Key{"predictor.tensors", at<&Config::predictor, &StrategyConfig::tensors>(), "",
        "a safetensors file for it, counted in the budget"},
    Key{"quantizer.name", at<&Config::quantizer, &StrategyConfig::name>(), "", "in which encoding"},
    Key{"quantizer.fallback", at<&Config::quantizer, &StrategyConfig::fallback>(), "",
        "what takes its place when it fails; empty: requests fail from then on"},
    Key{"quantizer.tensors", at<&Config::quantizer, &StrategyConfig::tensors>(), "",
        "a safetensors file for it, counted in the budget"},
    Key{"cache.name", at<&Config::cache, &StrategyConfig::name>(), "", "what stays in DRAM"},
    Key{"cache.fallback", at<&Config::cache, &StrategyConfig::fallback>(), "",
        "what takes its place when it fails; empty: requests fail from then on"},
    Key{"cache.tensors", at<&Config::cache, &StrategyConfig::tensors>(), "",
        "a safetensors file for it, counted in the budget"},
    Key{"balancer.name", at<&Config::balancer, &StrategyConfig::name>(), "", "who computes"},
    Key{"balancer.fallback", at<&Config::balancer, &StrategyConfig::fallback>(), "",
        "what takes its place when it fails; empty: requests fail from then on"},
    Key{"balancer.tensors", at<&Config::balancer, &StrategyConfig::tensors>(), "",
        "a safetensors file for it, counted in the budget"},
    Key{"scheduler.prefetch", at<&Config::prefetch>(), "", "read ahead for the sites to come"},
    Key{"scheduler.measure_every", at<&Config::measure_every>(), "",
        "in every so many steps bundled FFNs are computed whole, to tell what was missed; 0 is never"},
    Key{"scheduler.shuffle", at<&Config::shuffle>(), "",
        "a seed: deliver messages in a drawn order (for tests)"},
};

constexpr size_t kDeepestTable = 4;  // more than any key lies in: deeper ones are not looked into
constexpr const char* kCommandLine = "--set";

std::string suggestion(std::string_view unknown) {
  std::vector<std::string_view> known;
  for (const Key& key : kKeys) known.push_back(key.path);
  const std::string_view meant = nearest(unknown, known);
  return meant.empty() ? "" : fmt::format("; did you mean '{}'?", meant);
}

// A table that names a plugin, which reads the keys of it that are not declared here.
struct PluginTable {
  std::string_view named_at;  // the key that names the plugin
  std::string* name = nullptr;
  std::vector<Setting>* settings = nullptr;
};

std::optional<PluginTable> plugin_table(Config& config, std::string_view table) {
  const auto strategy = [](StrategyConfig& of) { return PluginTable{"name", &of.name, &of.settings}; };
  const auto tier = [](TierConfig& of) { return PluginTable{"agent", &of.agent, &of.settings}; };
  if (table == "predictor") return strategy(config.predictor);
  if (table == "quantizer") return strategy(config.quantizer);
  if (table == "cache") return strategy(config.cache);
  if (table == "balancer") return strategy(config.balancer);
  if (table == "tiers.flash") return tier(config.flash);
  if (table == "tiers.dram") return tier(config.dram);
  return std::nullopt;
}

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
  void add(std::string line) { errors_.push_back(std::move(line)); }

  Status status() const {
    if (errors_.empty()) return {};
    return Error{Code::invalid_argument, "", errors_.front(), {errors_.begin() + 1, errors_.end()}};
  }

 private:
  void set(const std::string& path, const toml::node& node, const std::string& origin) {
    const auto key = std::find_if(kKeys.begin(), kKeys.end(), [&](const Key& k) { return k.path == path; });
    if (key == kKeys.end()) {
      if (!keep_setting(path, node, origin)) {
        add(fmt::format("{}: unknown key '{}'{}", origin, path, suggestion(path)));
      }
      return;
    }
    if (origin == kCommandLine) forget_settings(key->path, node);
    const auto expected = [&](std::string_view what) {
      add(fmt::format("{}: '{}' must be {}", origin, path, what));
    };
    std::visit(
        [&](auto place) {
          using T = std::remove_reference_t<decltype(place(config_))>;
          if constexpr (std::is_same_v<T, bool>) {
            if (const auto value = node.value_exact<bool>()) {
              place(config_) = *value;
            } else {
              expected("true or false");
            }
          } else if constexpr (std::is_same_v<T, std::string>) {
            // "64 MiB" and 67108864 are both sizes.
            std::string text;
            if (const auto value = node.value_exact<std::string>()) {
              text = *value;
            } else if (const auto number = node.value_exact<int64_t>()) {
              text = std::to_string(*number);
            } else {
              return expected("a string");
            }
            if (!key->choices.empty() && !one_of(key->choices, text)) {
              return add(
                  fmt::format("{}: '{}' is '{}', expected one of {}", origin, path, text, key->choices));
            }
            place(config_) = std::move(text);
          } else if constexpr (std::is_same_v<T, double>) {
            const auto value = node.value<double>();  // 1 is one, too
            if (!value || !(*value >= 0 && *value < 1)) return expected("a number of at least 0 and below 1");
            place(config_) = *value;
          } else {
            const auto value = node.value_exact<int64_t>();
            if (!value || *value < 0 || static_cast<uint64_t>(*value) > std::numeric_limits<T>::max()) {
              return expected("a whole number, not negative");
            }
            place(config_) = static_cast<T>(*value);
          }
        },
        key->field);
  }

  // Another plugin than that of the file: what the file told that one is not for this one.
  void forget_settings(std::string_view path, const toml::node& name) {
    const size_t dot = path.rfind('.');
    const std::optional<PluginTable> table = plugin_table(config_, path.substr(0, dot));
    if (!table || path.substr(dot + 1) != table->named_at) return;
    if (name.value_or(std::string_view()) == *table->name) return;
    std::erase_if(*table->settings, [](const Setting& setting) { return setting.origin != kCommandLine; });
  }

  // A key below a table that names a plugin is that plugin's. False for any other.
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
  std::vector<std::string> errors_;
};

// toml++ throws; what it says is kept.
Result<toml::table> parse(std::string_view text, const std::string& file) {
  try {
    return toml::parse(text, file);
  } catch (const toml::parse_error& error) {
    return Error{Code::invalid_argument,
                 fmt::format("{}:{}", file, static_cast<size_t>(error.source().begin.line)),
                 std::string(error.description())};
  }
}

}  // namespace

Result<Config> load_config(const std::string& file, const std::vector<std::string>& overrides) {
  Config config;
  Reader reader(config);
  if (!file.empty()) {
    std::error_code ignored;
    if (std::filesystem::is_directory(file, ignored))
      return Error{Code::invalid_argument, file, "is a folder"};
    std::ifstream in(file);
    if (!in) return Error{Code::not_found, file, "cannot be opened"};
    if (std::filesystem::is_directory(file)) {
      return Error{Code::invalid_argument, file, "is a folder, expected a TOML file"};
    }
    std::stringstream text;
    text << in.rdbuf();
    TIERD_ASSIGN(const toml::table table, parse(text.str(), file));
    reader.read(table, file);
  }
  for (const std::string& line : overrides) {
    const size_t equals = line.find('=');
    if (equals == std::string::npos) {
      reader.add(fmt::format("--set {}: expected key=value", line));
      continue;
    }
    // A bare word needs no quotes.
    auto table = parse(line, "--set");
    if (!table.ok()) {
      std::string quoted = line.substr(0, equals) + "=\"";
      for (const char c : line.substr(equals + 1))
        quoted += (c == '"' || c == '\\') ? std::string("\\") + c : std::string(1, c);
      table = parse(quoted + "\"", "--set");
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
  for (const Key& key : kKeys) {
    const bool same = std::visit([&](auto place) { return place(a) == place(b); }, key.field);
    if (!same) changed.emplace_back(key.path);
  }
  for (const std::string table :
       {"tiers.flash", "tiers.dram", "predictor", "quantizer", "cache", "balancer"}) {
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

std::string config_manual() {
  Config defaults;
  std::string text;
  for (const Key& key : kKeys) {
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
    text += fmt::format("  {:<22} {:<14} {}{}\n", key.path, value, key.help,
                        key.choices.empty() ? "" : fmt::format(" ({})", key.choices));
  }
  return text;
}

}  // namespace tierd
