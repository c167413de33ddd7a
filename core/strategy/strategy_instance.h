// One instance of a plugin, and its host functions.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>

#include "core/base/result.h"
#include "core/kernel/wish_list.h"
#include "core/strategy/parameters.h"
#include "core/strategy/plugin_world.h"
#include "tierd/plugin.h"

namespace tierd {

// A plugin and its configuration.
struct StrategyChoice {
  const tierd_plugin* plugin = nullptr;
  std::string origin;  // the file, for errors
  Parameters parameters;
  std::shared_ptr<const PluginTensors> tensors;  // may be NULL
};

class StrategyInstance {
 public:
  // `world` outlives the instance. Error: plugin_fault with the reason that the plugin logged.
  static Result<std::unique_ptr<StrategyInstance>> create(StrategyChoice choice, const PluginWorld& world);
  ~StrategyInstance();
  StrategyInstance(const StrategyInstance&) = delete;
  StrategyInstance& operator=(const StrategyInstance&) = delete;

  void* self() const { return self_; }
  const StrategyChoice& choice() const { return choice_; }
  WishList& wishes() { return wishes_; }
  // Returns the last error that the instance logged.
  const std::string& last_words() const { return last_words_; }
  // Called before a call whose logged error will be reported.
  void forget_words() { last_words_.clear(); }
  // Returns the gauges that the instance has set.
  const std::map<std::string, double>& metrics() const { return metrics_; }

 private:
  struct Free {
    void operator()(std::byte* memory) const;
  };
  StrategyInstance(StrategyChoice choice, const PluginWorld& world);
  // The functions of tierd_host.
  template <class T>
  static int get(void* context, const char* name, T* value);
  static int get_flag(void* context, const char* name, uint8_t* value);
  static int get_text(void* context, const char* name, const char** value);
  static void log(void* context, int level, const char* line);
  static int metric(void* context, const char* name, double value);
  static void* scratch(void* context, uint64_t bytes);
  static int wish(void* context, const tierd_wish* wish);
  static uint64_t holders(void* context, uint32_t edition, uint32_t neuron);
  static uint32_t home(void* context, uint32_t edition, uint32_t neuron);
  static int evictable(void* context, uint32_t edition, uint32_t neuron);
  static int at_home(void* context, uint32_t edition, uint32_t neuron);
  static uint32_t held(void* context, uint32_t memory, uint32_t edition);
  static const uint8_t* heat(void* context, uint32_t site);
  static int resident(void* context, uint32_t edition, uint8_t* here);
  static int tensor(void* context, const char* name, tierd_tensor_view* out);
  static int linear(void* context, uint32_t tensor, const float* x, uint32_t rows, float* y);

  StrategyChoice choice_;
  const PluginWorld& world_;
  tierd_host host_{};
  WishList wishes_;
  void* self_ = nullptr;
  std::string last_words_;
  std::map<std::string, double> metrics_;
  std::unique_ptr<std::byte[], Free> scratch_;
  uint64_t scratch_bytes_ = 0;
};

}  // namespace tierd
