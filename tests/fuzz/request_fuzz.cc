// The JSON body of a completion or a chat, as its first byte says.
#include <nlohmann/json.hpp>

#include "core/base/check.h"
#include "core/base/json_fields.h"
#include "core/model/text/chat_template.h"
#include "core/model/text/text_stream.h"
#include "tests/fuzz/target.h"
#include "tests/store/memory_source.h"
#include "tools/tierd/server/api/api_error.h"
#include "tools/tierd/server/api/completion_request.h"

namespace tierd {
namespace {

void expect_client_error(const Error& error) {
  const ApiError answer = api_error(error);
  TIERD_CHECK_MSG(answer.status >= 400 && answer.status < 500, answer.message);
  TIERD_CHECK_MSG(answer.message.find('\n') == std::string::npos, answer.message);
  TIERD_CHECK(nlohmann::json::accept(answer.body()));
}

}  // namespace

void fuzz(std::string_view input) {
  static const std::unique_ptr<Tokenizer> tokenizer = std::move(*make_tokenizer(small_vocab(300), "fuzz"));
  if (input.empty()) return;
  const auto names = ChatTemplate::names();
  const size_t which = static_cast<unsigned char>(input.front()) % (names.size() + 1);
  const auto body = parse_json(input.substr(1), "request");
  if (!body.ok()) return expect_client_error(body.error());
  std::optional<ChatTemplate> chat;
  if (which != 0) chat = *ChatTemplate::named(names[which - 1], tokenizer->vocab());
  const BodyForm form = chat ? BodyForm::chat : BodyForm::completion;
  const auto request = read_completion(*body, *tokenizer, {}, form, chat ? &*chat : nullptr);
  if (!request.ok()) return expect_client_error(request.error());
  TIERD_CHECK(!request->too_long);
  TIERD_CHECK(!request->prompts.empty() && request->n != 0);
  for (const std::vector<uint32_t>& prompt : request->prompts) {
    TIERD_CHECK(!prompt.empty());
    for (const uint32_t token : prompt) TIERD_CHECK(token < 300);
  }
  TIERD_CHECK(Sampler::create(request->generation.sampling).ok());
  TextStream stream(request->generation.stops);
  std::string shown = stream.add(input.substr(1));
  shown += stream.finish();
  TIERD_CHECK(well_formed(shown) == shown);
}

}  // namespace tierd
