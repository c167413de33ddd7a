// Makes the answer to a completion out of what its texts tell: one object in the end, or a stream of
// server-sent events.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "core/text/tokenizer.h"
#include "tools/tierd/api/api_error.h"
#include "tools/tierd/api/completion_request.h"
#include "tools/tierd/api/generation.h"
#include "tools/tierd/http/http_server.h"

namespace tierd {

// One thread: the HTTP server's.
class CompletionAnswer {
 public:
  struct About {
    std::string id;     // "cmpl-..."
    std::string model;  // as clients call it
    bool chat = false;
    uint64_t created = 0;  // s since 1970
  };
  // The tokenizer outlives it.
  CompletionAnswer(std::shared_ptr<HttpReply> reply, const Tokenizer& tokenizer,
                   const CompletionRequest& request, About about);

  // It waits for its turn: a stream begins.
  void accepted();
  // Nothing will come.
  void refused(const ApiError& why);
  // Takes an event of text `index`; prompt p's texts are p * n to p * n + n - 1.
  void event(size_t index, const GenerationEvent& event);

  // Whether all has been said.
  bool over() const { return over_; }

 private:
  struct Choice {
    std::string text;
    std::string finish_reason;
    std::vector<PromptTokenEvent> tokens;  // whose logprobs were asked for, the prompt's first
    size_t told = 0;                       // of those, in the stream
    size_t characters = 0;                 // of those that were told
    bool ended = false;
    bool begun = false;  // its first delta was told
    EndEvent end;
  };
  void take(size_t index, const ProgressEvent& progress);
  void take(size_t index, const PromptTokenEvent& token);
  void take(size_t index, const TokenEvent& token);
  void take(size_t index, const EndEvent& end);

  nlohmann::json object(const char* kind) const;
  void tell(nlohmann::json object);
  void tell_text(size_t index, const std::string& text, const GenerationTimes& times);
  nlohmann::json choice_json(size_t index, const std::string* delta, bool last);
  nlohmann::json logprobs_json(Choice& choice) const;
  nlohmann::json token_list(Choice& choice) const;
  nlohmann::json token_table(Choice& choice) const;
  std::string shown(const Choice& choice, uint32_t token) const;
  nlohmann::json usage_json() const;
  void finish();
  void fail(const ApiError& why);

  std::shared_ptr<HttpReply> reply_;
  const Tokenizer& tokenizer_;
  About about_;
  std::vector<std::string> echoed_;  // [prompts], the text of each; or nothing
  uint32_t n_;
  bool stream_, include_usage_, return_progress_, timings_per_token_, logprobs_;
  std::vector<Choice> choices_;
  size_t left_;
  bool over_ = false;
};

}  // namespace tierd
