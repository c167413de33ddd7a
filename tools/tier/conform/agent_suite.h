// The rules that every agent must keep (tiers/README.md), whatever its memory is.
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

// An agent with what it needs to live, and messages for it. What is wrong is told as text; empty: nothing.
// A message and what it refers to, which stays as it is until the world has been told of its completion.
struct Request {
  Message message;
  Payload payload = {};
};

class AgentWorld {
 public:
  virtual ~AgentWorld() = default;
  virtual Agent& agent() = 0;
  // A message with work, with an id of its own; it ends ok, where the agent promises anything.
  virtual Request work() = 0;
  virtual bool promises() const { return true; }
  // Advice about a message.
  virtual Request control(Op op, const MessageId& about) = 0;
  // For agents that serve `move` and `resize`, this message asks for another place for something that `work`
  // uses, or for other addresses in use, and what `work` needs is among them. No other message may be open.
  // There is none where the agent does not serve them.
  virtual std::optional<Request> rearrange() { return std::nullopt; }
  // For agents that serve `run` and `move`: moves into the memory, and a run of what they bring, which names
  // the last one (Message::about). Where it `fails`, that one cannot be done. No other message may be open.
  struct Behind {
    std::vector<Request> moves;
    Request run;
  };
  virtual std::optional<Behind> behind(bool fails) {
    (void)fails;
    return std::nullopt;
  }
  // Messages that must fail, and how.
  struct Bad {
    std::string what;
    Request request;
    DoneStatus status = DoneStatus::invalid_argument;
    uint32_t first_bad = 0;
  };
  virtual std::vector<Bad> bad() { return {}; }
  // The message has completed: its results are looked at, its lists and data may be used again.
  virtual std::string completed(const Message& message, const Done& done) = 0;
  // Memory that belongs to no message was written to, up to now.
  virtual std::string trespass() = 0;
};

struct AgentCase {
  std::string name;
  std::function<Result<std::unique_ptr<AgentWorld>>(uint64_t seed)> make;
};

// One rule, tried in a world of its own.
struct AgentRule {
  const char* name;  // as a test is called
  void (*check)(const AgentCase& tried, uint64_t seed, Report& report);
};
std::span<const AgentRule> agent_rules();

// The worlds around a loaded agent: a store's file for one that reads, a small model for one that computes;
// for one that promises neither, any messages.
std::vector<AgentCase> agent_cases(const AgentChoice& choice);

// Tries all rules in all worlds. Only the seed of `options` is used.
void run_agent_suite(const AgentChoice& choice, const SuiteOptions& options, Report& report);

}  // namespace tierd
