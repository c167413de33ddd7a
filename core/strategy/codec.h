// Runs a plugin that is a codec (tierd/ext/codec.h).
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/base/setting.h"
#include "core/model/layout/neuron_codec.h"
#include "core/strategy/plugin_path.h"
#include "core/strategy/plugin_world.h"
#include "core/strategy/strategy_instance.h"

namespace tierd {

// Has one instance of the plugin for each concurrent call. An instance whose call failed is not used again.
class Codec final : public NeuronCodec {
 public:
  // Loads the codec of that name with `settings`. Errors: those of PluginPath::find, which begin with `key`,
  // of load_plugin, Parameters::read and create.
  static Result<std::unique_ptr<Codec>> load(const PluginPath& path, std::string_view name,
                                             const std::vector<Setting>& settings, std::string_view key);
  // Makes a codec of a loaded plugin. Error: plugin_fault, if its table is incomplete, it is lossy, or an
  // instance cannot be made.
  static Result<std::unique_ptr<Codec>> create(StrategyChoice choice);
  Codec(const Codec&) = delete;
  Codec& operator=(const Codec&) = delete;
  ~Codec() override;

  std::string_view name() const override { return choice_.plugin->name; }
  std::string_view settings() const override { return settings_; }
  Status compress(std::span<const std::byte> dense, std::vector<std::byte>& kept) const override;
  Status expand(std::span<const std::byte> kept, std::span<std::byte> dense) const override;

 private:
  class Instance;

  explicit Codec(StrategyChoice choice);
  Result<std::unique_ptr<Instance>> take() const;
  void give_back(std::unique_ptr<Instance> instance) const;

  const StrategyChoice choice_;
  const std::string settings_;
  tierd_codec_1 table_{};
  const SiteTable no_sites_;
  const PluginWorld world_;  // without sites and memories
  mutable std::mutex mutex_;
  mutable std::vector<std::unique_ptr<Instance>> free_;  // under mutex_
};

}  // namespace tierd
