#include "core/strategy/strategy_instance.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <utility>

#include "core/base/align.h"

namespace tierd {
namespace {

constexpr size_t kMostMetrics = 64;
constexpr uint64_t kScratchAlignment = 64;
constexpr size_t kMostDims = 4;
constexpr uint32_t kLeastTensorView =
    offsetof(tierd_tensor_view, data) + sizeof(tierd_tensor_view::data);  // of version 1.0

spdlog::level::level_enum level_of(int level) {
  switch (level) {
    case TIERD_LOG_DEBUG:
      return spdlog::level::debug;
    case TIERD_LOG_INFO:
      return spdlog::level::info;
    case TIERD_LOG_WARNING:
      return spdlog::level::warn;
    default:
      return spdlog::level::err;
  }
}

// A plugin that refuses its configuration with a reason is not faulty.
Code code_of_refusal(int code) {
  switch (code) {
    case TIERD_E_UNSUPPORTED:
      return Code::unsupported;
    case TIERD_E_INVALID:
      return Code::invalid_argument;
    case TIERD_E_NO_SPACE:
      return Code::no_space;
    default:
      return Code::plugin_fault;
  }
}

}  // namespace

void StrategyInstance::Free::operator()(std::byte* memory) const {
  std::free(memory);
}

StrategyInstance::StrategyInstance(StrategyChoice choice, const PluginWorld& world)
    : choice_(std::move(choice)), world_(world), wishes_(world.sites().most_neurons()) {
  host_.size = sizeof host_;
  host_.context = this;
  host_.seed = world.seed();
  host_.n_sites = static_cast<uint32_t>(world.views().size());
  host_.sites = world.views().data();
  host_.n_editions = static_cast<uint32_t>(world.edition_views().size());
  host_.editions = world.edition_views().data();
  host_.n_memories = static_cast<uint32_t>(world.memory_views().size());
  host_.memories = world.memory_views().data();
  host_.n_units = static_cast<uint32_t>(world.unit_views().size());
  host_.units = world.unit_views().data();
  host_.memory = world.memory() == kStore ? TIERD_NO_MEMORY : world.memory();
  host_.integer = get<int64_t>;
  host_.number = get<double>;
  host_.flag = get_flag;
  host_.text = get_text;
  host_.log = log;
  host_.metric = metric;
  host_.scratch = scratch;
  host_.wish = wish;
  host_.holders = holders;
  host_.home = home;
  host_.evictable = evictable;
  host_.at_home = at_home;
  host_.tensor = tensor;
  host_.linear = linear;
  host_.held = held;
  host_.heat = heat;
  host_.resident = resident;
}

Result<std::unique_ptr<StrategyInstance>> StrategyInstance::create(StrategyChoice choice,
                                                                   const PluginWorld& world) {
  std::unique_ptr<StrategyInstance> instance(new StrategyInstance(std::move(choice), world));
  const tierd_plugin& plugin = *instance->choice_.plugin;
  const auto fault = [&](const std::string& why, Code code = Code::plugin_fault) {
    return Error{code, fmt::format("{} '{}'", plugin.kind, plugin.name), "could not be created: " + why};
  };
  int code = TIERD_OK;
  try {
    code = plugin.create(&instance->host_, &instance->self_);
  } catch (const std::exception& thrown) {
    return fault(fmt::format("create threw an exception: {}", thrown.what()));
  } catch (...) {
    return fault("create threw an exception");
  }
  if (code < 0) {
    instance->self_ = nullptr;  // an instance that could not be made is not destroyed
    const std::string& said = instance->last_words_;
    if (said.empty()) return fault(fmt::format("create returned {}", code));
    return fault(said, code_of_refusal(code));
  }
  if (instance->self_ == nullptr) return fault("create returned no instance");
  return instance;
}

StrategyInstance::~StrategyInstance() {
  if (self_ == nullptr) return;
  try {
    choice_.plugin->destroy(self_);
  } catch (...) {
    spdlog::error("{} '{}': destroy threw an exception", choice_.plugin->kind, choice_.plugin->name);
  }
}

template <class T>
int StrategyInstance::get(void* context, const char* name, T* value) {
  const T* found = static_cast<StrategyInstance*>(context)->choice_.parameters.get<T>(name);
  if (found == nullptr) return TIERD_E_INVALID;
  *value = *found;
  return TIERD_OK;
}

int StrategyInstance::get_flag(void* context, const char* name, uint8_t* value) {
  bool flag = false;
  if (const int code = get<bool>(context, name, &flag); code < 0) return code;
  *value = flag ? 1 : 0;
  return TIERD_OK;
}

int StrategyInstance::get_text(void* context, const char* name, const char** value) {
  const auto* found = static_cast<StrategyInstance*>(context)->choice_.parameters.get<std::string>(name);
  if (found == nullptr) return TIERD_E_INVALID;
  *value = found->c_str();
  return TIERD_OK;
}

void StrategyInstance::log(void* context, int level, const char* line) {
  auto& instance = *static_cast<StrategyInstance*>(context);
  if (line == nullptr) return;
  // The caller reports an error with the failing answer that follows it.
  if (level >= TIERD_LOG_ERROR) {
    instance.last_words_ = line;
    return;
  }
  const tierd_plugin& plugin = *instance.choice_.plugin;
  const Error escaped{Code::plugin_fault, fmt::format("{} '{}'", plugin.kind, plugin.name), line};
  spdlog::log(level_of(level), "{}", escaped.line());
}

int StrategyInstance::metric(void* context, const char* name, double value) {
  auto& metrics = static_cast<StrategyInstance*>(context)->metrics_;
  if (name == nullptr) return TIERD_E_INVALID;
  if (const auto found = metrics.find(name); found != metrics.end()) {
    found->second = value;
    return TIERD_OK;
  }
  if (metrics.size() >= kMostMetrics) return TIERD_E_NO_SPACE;
  metrics.emplace(name, value);
  return TIERD_OK;
}

void* StrategyInstance::scratch(void* context, uint64_t bytes) {
  auto& instance = *static_cast<StrategyInstance*>(context);
  if (bytes > instance.scratch_bytes_) {
    if (bytes > UINT64_MAX / 2) return nullptr;
    const uint64_t rounded = align_up(bytes, kScratchAlignment);
    auto* memory = static_cast<std::byte*>(std::aligned_alloc(kScratchAlignment, rounded));
    if (memory == nullptr) return nullptr;
    if (instance.scratch_ != nullptr) {
      std::memcpy(memory, instance.scratch_.get(), instance.scratch_bytes_);
    }
    std::memset(memory + instance.scratch_bytes_, 0, rounded - instance.scratch_bytes_);
    instance.scratch_.reset(memory);
    instance.scratch_bytes_ = rounded;
  }
  return instance.scratch_.get();
}

int StrategyInstance::wish(void* context, const tierd_wish* wish) {
  return wish == nullptr ? TIERD_E_INVALID : static_cast<StrategyInstance*>(context)->wishes_.add(*wish);
}

uint64_t StrategyInstance::holders(void* context, uint32_t edition, uint32_t neuron) {
  return static_cast<StrategyInstance*>(context)->world_.holders(edition, neuron);
}

uint32_t StrategyInstance::home(void* context, uint32_t edition, uint32_t neuron) {
  return static_cast<StrategyInstance*>(context)->world_.home(edition, neuron);
}

int StrategyInstance::evictable(void* context, uint32_t edition, uint32_t neuron) {
  return static_cast<StrategyInstance*>(context)->world_.evictable(edition, neuron) ? 1 : 0;
}

int StrategyInstance::at_home(void* context, uint32_t edition, uint32_t neuron) {
  return static_cast<StrategyInstance*>(context)->world_.at_home(edition, neuron) ? 1 : 0;
}

uint32_t StrategyInstance::held(void* context, uint32_t memory, uint32_t edition) {
  return static_cast<StrategyInstance*>(context)->world_.held(memory, edition);
}

const uint8_t* StrategyInstance::heat(void* context, uint32_t site) {
  return static_cast<StrategyInstance*>(context)->world_.heat(site);
}

int StrategyInstance::resident(void* context, uint32_t edition, uint8_t* here) {
  const PluginWorld& world = static_cast<StrategyInstance*>(context)->world_;
  if (edition >= world.sites().editions.size()) return TIERD_E_INVALID;
  world.resident(edition, {here, world.sites().editions[edition].n});
  return TIERD_OK;
}

int StrategyInstance::tensor(void* context, const char* name, tierd_tensor_view* out) {
  const PluginTensors* tensors = static_cast<StrategyInstance*>(context)->choice_.tensors.get();
  if (tensors == nullptr || name == nullptr || out->size < kLeastTensorView) return TIERD_E_INVALID;
  for (uint32_t i = 0; i < tensors->tensors.size(); ++i) {
    const PluginTensors::Tensor& tensor = tensors->tensors[i];
    if (tensor.name != name || tensor.dims.size() > kMostDims) continue;
    tierd_tensor_view view{};
    view.size = std::min<uint32_t>(out->size, sizeof view);  // the plugin may be older or newer
    view.tensor = i;
    view.n_dims = static_cast<uint32_t>(tensor.dims.size());
    std::copy(tensor.dims.begin(), tensor.dims.end(), view.dims);
    view.data = tensor.data.empty() ? nullptr : tensor.data.data();
    std::memcpy(out, &view, view.size);
    return TIERD_OK;
  }
  return TIERD_E_INVALID;
}

int StrategyInstance::linear(void* context, uint32_t tensor, const float* x, uint32_t rows, float* y) {
  auto& instance = *static_cast<StrategyInstance*>(context);
  const PluginTensors* tensors = instance.choice_.tensors.get();
  if (tensors == nullptr || tensor >= tensors->tensors.size() || !instance.world_.linear()) {
    return TIERD_E_INVALID;
  }
  const PluginTensors::Tensor& found = tensors->tensors[tensor];
  if (found.dims.size() != 2) return TIERD_E_INVALID;
  instance.world_.linear()(found, x, rows, y);
  return TIERD_OK;
}

}  // namespace tierd
