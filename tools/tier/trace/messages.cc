#include "tools/tier/trace/messages.h"

#include <fmt/format.h>

#include <algorithm>

namespace tierd {

std::optional<Served> Messages::take(const Event& event) {
  if (const auto* posted = event.as<Posted>()) {
    Served& open = open_[posted->message.id.slot];
    open = {};
    open.posted = posted->message;
    open.units = posted->units.size();
    open.posted_ns = event.ns;
    return std::nullopt;
  }
  const auto* delivered = event.as<Delivered>();
  if (delivered == nullptr) return std::nullopt;
  const auto found = open_.find(delivered->done.id.slot);
  if (found == open_.end() || found->second.posted.id != delivered->done.id) return std::nullopt;
  Served served = found->second;
  open_.erase(found);
  served.delivered_ns = event.ns;
  served.done = delivered->done;
  served.withdrawn = delivered->withdrawn;
  return served;
}

std::string lane_name(const TraceHeader& header, const Message& message) {
  const bool known = message.agent >= 1 && message.agent <= header.agents.size();
  if (!known) return fmt::format("agent {} {}", message.agent, tierd::name(message.op));
  const std::string& name = header.agents[message.agent - 1u].name;
  const auto same = std::count_if(header.agents.begin(), header.agents.end(),
                                  [&](const TraceAgent& agent) { return agent.name == name; });
  return fmt::format("{}{} {}", name, same > 1 ? fmt::format(" {}", message.agent) : "",
                     tierd::name(message.op));
}

}  // namespace tierd
