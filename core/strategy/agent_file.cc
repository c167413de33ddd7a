#include "core/strategy/agent_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>

#include "core/base/align.h"
#include "core/strategy/parameters.h"
#include "core/strategy/shared_object.h"

namespace tierd {
namespace {

constexpr size_t kLeastSize = offsetof(AgentEntry, build_id) + sizeof(AgentEntry::build_id);

// Checks the pools that an agent that computes must have registered.
Status check_pools(const AgentChoice& choice, const AgentContext& context) {
  const ComputeTask& task = *context.compute;
  const auto check = [&](const char* what, std::span<std::byte> bytes, uint64_t wanted) -> Status {
    const bool aligned = reinterpret_cast<uintptr_t>(bytes.data()) % kDirectIoAlignment == 0;
    if (bytes.size() >= wanted && aligned) return {};
    return file_fault(choice.origin,
                      fmt::format("could not be made: its {} have {} B, {} B at a multiple of {} "
                                  "were expected",
                                  what, bytes.size(), wanted, kDirectIoAlignment));
  };
  if (is_apart(*choice.entry)) {
    if (!context.pools.memory(task.memory).empty())
      return file_fault(choice.origin, "could not be made: it registered a memory that nobody else reaches");
  } else {
    TIERD_TRY(check("arena, staging and tensors", context.pools.memory(task.memory),
                    task.arena_bytes + task.staging_bytes + task.tensor_bytes));
  }
  return check("activations", context.pools.activations(context.number), buffer_offsets(task.plan).back());
}

}  // namespace

Result<const AgentEntry*> load_agent(const std::string& path, std::string_view name) {
  TIERD_ASSIGN(const void* symbol, load_symbol(path, {kAgentSymbol, "an agent", "TIERD_AGENT"}));
  const auto* entry = static_cast<const AgentEntry*>(symbol);
  TIERD_TRY(check_agent(*entry, path, name));
  return entry;
}

Status check_agent(const AgentEntry& entry, const std::string& origin, std::string_view name) {
  const auto too_short = [&] {
    return file_fault(origin,
                      fmt::format("its entry has {} B, {} B were expected", entry.size, sizeof(AgentEntry)));
  };
  if (entry.size < kLeastSize) return too_short();
  if (entry.build_id == nullptr || std::string_view(entry.build_id) != TIERD_BUILD_ID) {
    return file_fault(origin,
                      fmt::format("was built for [{}], this is [{}]: build it anew against this tierd",
                                  entry.build_id == nullptr ? "nothing" : entry.build_id, TIERD_BUILD_ID));
  }
  if (entry.size != sizeof(AgentEntry)) return too_short();
  if (entry.name == nullptr) return file_fault(origin, "its entry has no name");
  if (entry.summary == nullptr) return file_fault(origin, "its entry has no summary");
  if (entry.make == nullptr) return file_fault(origin, "its entry has no function 'make'");
  if (name != entry.name) {
    return file_fault(origin, fmt::format("calls itself agent '{}', by its file name agent '{}' was expected",
                                          entry.name, name));
  }
  if (entry.n_params != 0 && entry.params == nullptr)
    return file_fault(origin, "declares parameters and has none");
  return check_declarations(as_plugin(entry), origin);
}

Result<AgentChoice> choose_settings(const AgentEntry& entry, const std::string& origin,
                                    std::string_view table, const std::vector<Setting>& settings,
                                    std::span<const std::string_view> other_keys) {
  const std::string kind(table);
  const tierd_plugin plugin = as_plugin(entry, kind.c_str());
  const std::span<const tierd_param> declared(entry.params, entry.n_params);
  // The configuration may write a text as a number, for example a size.
  std::vector<Setting> told = settings;
  for (Setting& setting : told) {
    const int64_t* number = std::get_if<int64_t>(&setting.value);
    const bool text = std::any_of(declared.begin(), declared.end(), [&](const tierd_param& param) {
      return setting.key == param.name && param.type == TIERD_PARAM_TEXT;
    });
    if (number != nullptr && text) setting.value = std::to_string(*number);
  }
  TIERD_ASSIGN(const Parameters parameters, Parameters::read(plugin, told, other_keys));
  AgentChoice choice{&entry, origin};
  for (const tierd_param& param : declared) {
    choice.settings.push_back({param.name, parameters.values().at(param.name), origin});
  }
  return choice;
}

Result<MadeAgent> make_agent(const AgentChoice& choice, AgentContext& context) {
  context.settings = choice.settings;
  const auto failed = [&](std::string_view why) {
    return file_fault(choice.origin, fmt::format("could not be made: {}", why));
  };
  try {
    TIERD_ASSIGN(MadeAgent made, choice.entry->make(context));
    if (made.agent == nullptr) return failed("make made no agent");
    if (made.agent->credits() == 0) return failed("it has no credits");
    if ((choice.entry->serves & serves(Op::run)) != 0 && made.products == nullptr) {
      return failed("it serves 'run' and offers no products");
    }
    if (is_apart(*choice.entry) && !made.load) return failed("its memory is apart, and cannot be loaded");
    if (context.compute) TIERD_TRY(check_pools(choice, context));
    return made;
  } catch (const std::exception& error) {
    return failed(fmt::format("make threw an exception: {}", error.what()));
  } catch (...) {
    return failed("make threw an exception");
  }
}

tierd_plugin as_plugin(const AgentEntry& entry, const char* kind) {
  tierd_plugin plugin{};
  plugin.abi_major = TIERD_ABI_MAJOR;
  plugin.abi_minor = TIERD_ABI_MINOR;
  plugin.size = sizeof plugin;
  plugin.kind = kind;
  plugin.name = entry.name;
  plugin.summary = entry.summary;
  plugin.params = entry.params;
  plugin.n_params = entry.n_params;
  plugin.param_size = sizeof(tierd_param);
  return plugin;
}

}  // namespace tierd
