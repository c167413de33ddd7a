// Writes the answer to a completion from the events of its texts: one object at the end, or a stream of
// server-sent events, in OpenAI's form or llama-server's.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "core/model/text/tokenizer.h"
#include "tools/tierd/server/api/api_error.h"
#include "tools/tierd/server/api/completion_request.h"
#include "tools/tierd/server/api/generation.h"
#include "tools/tierd/server/http/http_server.h"

namespace tierd {

// All calls on the HTTP server's thread.
class CompletionAnswer {
 public:
  struct About {
    std::string id;     // "cmpl-..."
    std::string model;  // the name that clients use
    BodyForm form = BodyForm::completion;
    uint64_t created = 0;  // s since 1970
  };
  // The tokenizer must outlive the object.
  CompletionAnswer(std::shared_ptr<HttpReply> reply, const Tokenizer& tokenizer,
                   std::shared_ptr<const CompletionRequest> request, About about);

  // The batcher has queued all texts. Begins the stream, if one was requested.
  void accepted();
  // The texts will not be generated. Sends the error.
  void refused(const ApiError& why);
  // Takes an event of text `index`; prompt p's texts are p * n to p * n + n - 1.
  void event(size_t index, const GenerationEvent& event);

  // Returns whether the answer is complete or has failed.
  bool over() const { return over_; }

 private:
  struct Choice {
    std::string text;
    std::string finish_reason;
    std::vector<PromptTokenEvent> tokens;  // not written yet, with logprobs, the prompt's first
    size_t characters = 0;                 // of the tokens that were written
    std::vector<uint32_t> numbers;         // llama-server's "tokens", not written yet
    bool has_new_line = false;
    bool ended = false;
    bool begun = false;  // its first delta was written
    EndEvent end;
  };
  void take(size_t index, const ProgressEvent& progress);
  void take(size_t index, const PromptTokenEvent& token);
  void take(size_t index, const TokenEvent& token);
  void take(size_t index, const EndEvent& end);

  nlohmann::json object(const char* kind) const;
  // Returns a chunk of a stream in OpenAI's form.
  nlohmann::json chunk() const;
  bool is_chat() const { return about_.form == BodyForm::chat; }
  bool is_native() const { return about_.form == BodyForm::native; }
  // Counts bytes of an answer that is kept. Returns false and fails an answer that is too large.
  bool may_keep(uint64_t bytes);
  void tell(nlohmann::json object);
  void tell_text(size_t index, const std::string& text, const GenerationTimes& times);
  nlohmann::json choice_json(size_t index, const std::string* delta, bool last);
  nlohmann::json logprobs_json(Choice& choice) const;
  nlohmann::json token_list(Choice& choice) const;
  nlohmann::json token_table(Choice& choice) const;
  std::string shown(const Choice& choice, uint32_t token) const;
  nlohmann::json native_json(size_t index, std::string content);
  nlohmann::json usage_json() const;
  std::string whole();
  void finish();
  void fail(const ApiError& why);

  std::shared_ptr<HttpReply> reply_;
  const Tokenizer& tokenizer_;
  About about_;
  std::vector<std::string> echoed_;  // [prompts] the text of each; empty without echo
  std::shared_ptr<const CompletionRequest> request_;
  uint32_t n_;
  bool stream_, logprobs_;
  uint64_t kept_bytes_ = 0;  // of an answer that is one object
  std::vector<Choice> choices_;
  size_t left_;
  bool over_ = false;
};

}  // namespace tierd
