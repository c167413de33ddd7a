#include "core/strategy/codec.h"

#include <fmt/format.h>

#include <cstdint>
#include <new>
#include <utility>

#include "core/kernel/strategies.h"
#include "core/strategy/plugin_file.h"

namespace tierd {
namespace {

// Returns "level=3", in the order of the names; a text without quotes.
std::string settings_text(const Parameters& parameters) {
  std::string text;
  for (const auto& [key, value] : parameters.values()) {
    text += text.empty() ? "" : ", ";
    text += std::visit([&, &key = key](const auto& v) { return fmt::format("{}={}", key, v); }, value);
  }
  return text;
}

}  // namespace

// One instance of the plugin, for one call at a time.
class Codec::Instance {
 public:
  static Result<std::unique_ptr<Instance>> make(const StrategyChoice& choice, const tierd_codec_1& table,
                                                const PluginWorld& world) {
    TIERD_ASSIGN(auto made, StrategyInstance::create(choice, world));
    return std::unique_ptr<Instance>(new Instance(std::move(made), table));
  }

  Status compress(std::span<const std::byte> dense, std::vector<std::byte>& kept) {
    uint64_t most = 0;
    TIERD_TRY(call("bound", [&] { return plugin_.table.bound(plugin_.self, dense.size(), &most); }));
    const uint64_t allowed = 2 * dense.size() + TIERD_CODEC_MOST_BEYOND;
    if (most == 0 || most > allowed)
      return plugin_.fault("bound",
                           fmt::format("{} for {} bytes, expected 1 to {}", most, dense.size(), allowed));
    try {
      kept.resize(most);
    } catch (const std::bad_alloc&) {
      return refused(Code::no_space, fmt::format("there is no memory for {} bytes", most));
    }
    uint64_t written = 0;
    TIERD_TRY(call("compress", [&] {
      return plugin_.table.compress(plugin_.self, dense.data(), dense.size(), kept.data(), most, &written);
    }));
    if (written == 0 || written > most)
      return plugin_.fault("compress", fmt::format("wrote {} bytes, expected 1 to {}", written, most));
    kept.resize(written);
    return {};
  }

  Status expand(std::span<const std::byte> kept, std::span<std::byte> dense) {
    const auto expand = [&] {
      return plugin_.table.expand(plugin_.self, kept.data(), kept.size(), dense.data(), dense.size());
    };
    return call("expand", expand, true);
  }

  // Returns whether the instance threw, answered nonsense, or failed by its own fault.
  bool broken() const { return plugin_.quarantined(); }

 private:
  Instance(std::unique_ptr<StrategyInstance> made, const tierd_codec_1& table) : made_(std::move(made)) {
    plugin_.kind = made_->choice().plugin->kind;
    plugin_.name = made_->choice().plugin->name;
    plugin_.self = made_->self();
    plugin_.deadline_ns = kNoPluginDeadline;
    plugin_.last_words = &made_->last_words();
    plugin_.table = table;
  }

  Error refused(Code code, std::string what) const {
    return {code, fmt::format("{} '{}'", plugin_.kind, plugin_.name), std::move(what)};
  }
  // Makes a call. Lack of memory does not break the instance, nor an input to expand that is `malformed`.
  template <class Function>
  Status call(const char* what, const Function& function, bool malformed = false) {
    int code = TIERD_OK;
    made_->forget_words();
    TIERD_TRY(plugin_.watch(what, [&] {
      code = function();
      return code == TIERD_E_NO_SPACE || (malformed && code == TIERD_E_INVALID) ? int{TIERD_OK} : code;
    }));
    if (code >= 0) return {};
    const std::string& said = made_->last_words();
    return refused(code == TIERD_E_INVALID ? Code::corrupt : Code::no_space,
                   fmt::format("{}: returned {}{}{}", what, code, said.empty() ? "" : ": ", said));
  }

  std::unique_ptr<StrategyInstance> made_;
  Strategy<tierd_codec_1> plugin_;
};

Codec::Codec(StrategyChoice choice)
    : choice_(std::move(choice)),
      settings_(settings_text(choice_.parameters)),
      world_(no_sites_, 0, nullptr, {.topology = {}}) {}

Codec::~Codec() = default;

Result<std::unique_ptr<Codec>> Codec::load(const PluginPath& path, std::string_view name,
                                           const std::vector<Setting>& settings, std::string_view key) {
  StrategyChoice choice;
  TIERD_ASSIGN(choice.origin, path.find("codec", name, key));
  TIERD_ASSIGN(choice.plugin, load_plugin(choice.origin, "codec", name));
  TIERD_ASSIGN(choice.parameters, Parameters::read(*choice.plugin, settings));
  return create(std::move(choice));
}

Result<std::unique_ptr<Codec>> Codec::create(StrategyChoice choice) {
  std::unique_ptr<Codec> codec(new Codec(std::move(choice)));
  const StrategyChoice& chosen = codec->choice_;
  if (chosen.plugin->lossy != 0 || chosen.parameters.lossy())
    return Error{Code::plugin_fault, chosen.origin, "is lossy, expected a lossless codec"};
  TIERD_TRY(read_table(*chosen.plugin, chosen.origin, codec->table_));
  TIERD_ASSIGN(auto first, Instance::make(chosen, codec->table_, codec->world_));
  codec->give_back(std::move(first));
  return codec;
}

Result<std::unique_ptr<Codec::Instance>> Codec::take() const {
  const std::lock_guard lock(mutex_);
  if (free_.empty()) return Instance::make(choice_, table_, world_);
  std::unique_ptr<Instance> instance = std::move(free_.back());
  free_.pop_back();
  return instance;
}

void Codec::give_back(std::unique_ptr<Instance> instance) const {
  if (instance->broken()) return;
  const std::lock_guard lock(mutex_);
  free_.push_back(std::move(instance));
}

Status Codec::compress(std::span<const std::byte> dense, std::vector<std::byte>& kept) const {
  TIERD_ASSIGN(auto instance, take());
  Status done = instance->compress(dense, kept);
  give_back(std::move(instance));
  return done;
}

Status Codec::expand(std::span<const std::byte> kept, std::span<std::byte> dense) const {
  TIERD_ASSIGN(auto instance, take());
  Status done = instance->expand(kept, dense);
  give_back(std::move(instance));
  return done;
}

}  // namespace tierd
