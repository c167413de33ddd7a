// The engine as a library: continues a text as a configuration says.
//
//   generate CONFIG TEXT TOKENS KEY=VALUE...     generate configs/hybrid.toml "The sea" 40 model.path=MODEL
#include <cstdio>
#include <cstdlib>

#include "core/engine/session.h"
#include "core/model/sampling/sampler.h"
#include "core/model/text/tokenizer.h"
#include "core/run/prepare_run.h"
#include "core/run/runtime.h"

using namespace tierd;

// Errors are values that name the file, the key or the plugin concerned.
static Status generate(const Config& config, const std::string& text, int tokens) {
  TIERD_ASSIGN(RunPlan plan, prepare_run(config, {}));  // the store is open, memory is divided
  TIERD_ASSIGN(const auto tokenizer, make_tokenizer(plan.store.manifest().vocab, plan.store.directory()));
  TIERD_ASSIGN(const auto runtime, Runtime::create(std::move(plan), {}));
  TIERD_TRY(runtime->load());  // loads the neurons that stay resident
  TIERD_ASSIGN(Sampler sampler, Sampler::create({.temperature = 0}));
  Session session(runtime->engine(), 0);
  std::vector<uint32_t> next = tokenizer->encode(text, true, true);
  for (int i = 0; i < tokens; ++i) {
    TIERD_ASSIGN(const std::span<const float> logits, session.append(next));
    TIERD_ASSIGN(const uint32_t token, sampler.sample(logits));
    std::fputs(tokenizer->piece(token, false).c_str(), stdout);
    next = {token};
  }
  return {};
}

int main(int count, char** arguments) {
  if (count < 4) return std::fputs("usage: generate CONFIG TEXT TOKENS KEY=VALUE...\n", stderr), 2;
  const auto config = load_config(arguments[1], {arguments + 4, arguments + count});
  const Status status =
      config.ok() ? generate(*config, arguments[2], std::atoi(arguments[3])) : Status(config.error());
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.error().line().c_str());
  return status.ok() ? 0 : 2;
}
