#include "core/config/config.h"

#include <fmt/format.h>

#include <toml++/toml.h>
#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <sstream>
#include <variant>

namespace tierd {
namespace {

using Field = std::variant<std::string Config::*, uint32_t Config::*, uint64_t Config::*, bool Config::*>;

struct Key {
  std::string_view path;
  Field field;
  std::string_view choices;  // "a|b", or empty: anything of the type
  std::string_view help;
};

const std::array kKeys = {
    Key{"model.path", &Config::model, "",
        "GGUF file, Hugging Face folder, llama2.c checkpoint or store (-m)"},
    Key{"model.tokenizer", &Config::tokenizer, "", "a tokenizer to use instead of the model's"},
    Key{"run.threads", &Config::threads, "", "compute workers, 0 is one a core (-t)"},
    Key{"run.context", &Config::context, "", "positions, 0 is the model's but at most 4096 (-c)"},
    Key{"run.ubatch", &Config::ubatch, "", "most tokens of a prefill chunk (--ub)"},
    Key{"run.kv", &Config::kv, "f16|f32", "encoding of the KV cache"},
    Key{"run.seed", &Config::seed, "", "of sampling and of strategies that draw lots (-s)"},
    Key{"run.bind", &Config::bind, "", "bind compute workers to cores"},
    Key{"compute.activations", &Config::activations, "int8|f32",
        "what block-encoded weights are multiplied with; int8 is lossy and reports its error"},
    Key{"compute.kernels", &Config::kernels, "auto|avx512-vnni|avx2|scalar", "instruction set"},
    Key{"tiers.flash.device", &Config::flash_device, "auto|io_uring|pread", "how the store is read"},
    Key{"tiers.flash.depth", &Config::flash_depth, "", "most reads in flight"},
    Key{"tiers.flash.max_read", &Config::flash_max_read, "", "adjacent extents are read together up to this"},
    Key{"tiers.flash.verify", &Config::flash_verify, "", "check every extent's checksum whenever it is read"},
    Key{"tiers.flash.direct", &Config::flash_direct, "", "O_DIRECT, past the page cache"},
    Key{"tiers.flash.thread", &Config::flash_thread, "kernel|own", "who drives the agent"},
    Key{"tiers.flash.core", &Config::flash_core, "", "the core of its own thread; empty leaves it free"},
    Key{"tiers.dram.capacity", &Config::dram_capacity, "",
        "all, a share of the tensor bytes (50%) or a size"},
    Key{"tiers.dram.staging", &Config::dram_staging, "", "most that streaming bytes may occupy"},
    Key{"tiers.dram.thread", &Config::dram_thread, "kernel|own", "who drives the agent"},
    Key{"tiers.dram.core", &Config::dram_core, "", "the core of its own thread; empty leaves it free"},
    Key{"predictor.name", &Config::predictor, "", "which neurons are active"},
    Key{"quantizer.name", &Config::quantizer, "", "in which encoding"},
    Key{"cache.name", &Config::cache, "", "what stays in DRAM"},
    Key{"balancer.name", &Config::balancer, "", "who computes"},
    Key{"scheduler.prefetch", &Config::prefetch, "", "read ahead for the sites to come"},
    Key{"scheduler.shuffle", &Config::shuffle, "", "a seed: deliver messages in a drawn order (for tests)"},
};

constexpr size_t kDeepestTable = 4;     // more than any key lies in: deeper ones are not looked into
constexpr size_t kLongestMistake = 64;  // what is longer is no misspelt key, and comparing it would take long

size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t above = row[j];
      row[j] = std::min({above + 1, row[j - 1] + 1, diagonal + (a[i - 1] == b[j - 1] ? 0 : 1)});
      diagonal = above;
    }
  }
  return row[b.size()];
}

std::string suggestion(std::string_view unknown) {
  if (unknown.size() > kLongestMistake) return "";
  const auto last_word = [](std::string_view path) { return path.substr(path.rfind('.') + 1); };
  const auto table = [](std::string_view path) { return path.substr(0, path.rfind('.')); };
  std::string_view best;
  size_t least = SIZE_MAX;
  for (const Key& key : kKeys) {
    // A right word in the wrong table is near, too, and so is a table that is given a value.
    const size_t distance = std::min({edit_distance(unknown, key.path),
                                      edit_distance(last_word(unknown), last_word(key.path)) + 1,
                                      edit_distance(unknown, table(key.path)) + 1});
    if (distance < least) {
      least = distance;
      best = key.path;
    }
  }
  return least <= 1 + unknown.size() / 3 ? fmt::format("; did you mean '{}'?", best) : "";
}

class Reader {
 public:
  explicit Reader(Config& config) : config_(config) {}

  void read(const toml::table& table, const std::string& file, const std::string& prefix = "",
            size_t depth = 0) {
    for (const auto& [name, node] : table) {
      const std::string path = prefix + std::string(name.str());
      const std::string origin =
          file.empty() ? "--set" : fmt::format("{}:{}", file, static_cast<size_t>(name.source().begin.line));
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
    if (key == kKeys.end()) return add(fmt::format("{}: unknown key '{}'{}", origin, path, suggestion(path)));
    const auto expected = [&](std::string_view what) {
      add(fmt::format("{}: '{}' must be {}", origin, path, what));
    };
    std::visit(
        [&](auto member) {
          using T = std::remove_reference_t<decltype(config_.*member)>;
          if constexpr (std::is_same_v<T, bool>) {
            if (const auto value = node.value_exact<bool>()) {
              config_.*member = *value;
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
            config_.*member = std::move(text);
          } else {
            const auto value = node.value_exact<int64_t>();
            if (!value || *value < 0 || static_cast<uint64_t>(*value) > std::numeric_limits<T>::max()) {
              return expected("a whole number, not negative");
            }
            config_.*member = static_cast<T>(*value);
          }
        },
        key->field);
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

std::string config_manual() {
  const Config defaults;
  std::string text;
  for (const Key& key : kKeys) {
    const std::string value = std::visit(
        [&](auto member) {
          using T = std::remove_cvref_t<decltype(defaults.*member)>;
          if constexpr (std::is_same_v<T, std::string>) {
            return fmt::format("\"{}\"", defaults.*member);
          } else {
            return fmt::format("{}", defaults.*member);
          }
        },
        key.field);
    text += fmt::format("  {:<22} {:<14} {}{}\n", key.path, value, key.help,
                        key.choices.empty() ? "" : fmt::format(" ({})", key.choices));
  }
  return text;
}

}  // namespace tierd
