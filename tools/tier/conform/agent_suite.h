// The rules that every agent must keep (tiers/README.md), whatever its memory.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/agent/agent.h"
#include "core/base/result.h"
#include "core/strategy/agent_file.h"
#include "tools/tier/conform/report.h"
#include "tools/tier/conform/suites.h"

namespace tierd {

// A message and the lists that it refers to, which stay unchanged until AgentWorld::completed().
struct Request {
  Message message;
  Payload payload = {};
};

// An agent, the objects that it needs, and messages for it.
class AgentWorld {
 public:
  virtual ~AgentWorld() = default;
  virtual Agent& agent() = 0;
  // Returns a message with work, with a new id; it must end ok if the agent promises anything.
  virtual Request work() = 0;
  virtual bool promises() const { return true; }
  // Returns a `raise` or `cancel` of a message.
  virtual Request control(Op op, const MessageId& about) = 0;
  // For agents that serve `move` and `resize`: returns a message that moves a neuron of `work`, or changes
  // the addresses in use, which then still contain those that `work` needs. No other message may be open.
  // Empty for other agents.
  virtual std::optional<Request> rearrange() { return std::nullopt; }
  // For agents that serve `run` and `move`: moves into the memory, and a run that computes the moved neurons
  // and names the last move (Message::about). `fails`: the last move cannot succeed. No other message may be
  // open.
  struct Behind {
    std::vector<Request> moves;
    Request run;
  };
  virtual std::optional<Behind> behind(bool fails) {
    (void)fails;
    return std::nullopt;
  }
  // Messages that must fail, with the expected error.
  struct Bad {
    std::string what;
    Request request;
    DoneStatus status = DoneStatus::invalid_argument;
    uint32_t first_bad = 0;
  };
  virtual std::vector<Bad> bad() { return {}; }
  // Checks the results of a completed message and returns what is wrong with them, empty: nothing. The world
  // may reuse the message's lists and data after it.
  virtual std::string completed(const Message& message, const Done& done) = 0;
  // Returns what was written to memory that belongs to no message, empty: nothing.
  virtual std::string trespass() = 0;
};

struct AgentCase {
  std::string name;
  std::function<Result<std::unique_ptr<AgentWorld>>(uint64_t seed)> make;
};

// A rule, which is tried in worlds of its own.
struct AgentRule {
  const char* name;  // in the form of a test's name
  void (*check)(const AgentCase& tried, uint64_t seed, Report& report);
};
std::span<const AgentRule> agent_rules();

// Returns the worlds for a loaded agent: a store's file if it reads, a small model if it computes; for an
// agent that promises neither, any messages.
std::vector<AgentCase> agent_cases(const AgentChoice& choice);

// Tries all rules in all worlds. Only the seed of `options` is used.
void run_agent_suite(const AgentChoice& choice, const SuiteOptions& options, Report& report);

}  // namespace tierd
