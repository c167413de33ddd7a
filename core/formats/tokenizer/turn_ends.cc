#include "core/formats/tokenizer/turn_ends.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "core/formats/tokenizer/added_tokens.h"

namespace tierd {
namespace {

constexpr std::string_view kEnd = "<|end|>";
constexpr std::array<std::string_view, 34> kTurnEnds = {
    "<|eot_id|>", "<|im_end|>", kEnd, "<|return|>", "<|call|>", "<|calls|>", "<|flush|>", "<end_of_turn>",
    "<|endoftext|>", "<|end_of_text|>", "</s>", "<eos>", "<|eom_id|>", "<EOT>", "_<EOT>", "<|EOT|>", "[EOT]",
    "[EOS]", "<end_of_utterance>", "<turn|>", "<|tool_response>", "<｜end▁of▁sentence｜>", "[e~[",
    // Ends of code that is filled in: padding, a new repository, a new file.
    "<|fim_pad|>", "<fim-pad>", "<fim_pad>", "<PAD>", "[PAD]", "<|fim_repo|>", "<|repo_name|>", "<fim-repo>",
    "<REPO>", "<reponame>", "<|file_sep|>"};

bool has(const Vocab& vocab, std::string_view piece) {
  return std::ranges::find(vocab.pieces, piece) != vocab.pieces.end();
}

// Returns whether <|end|> ends only a part of a turn, and other tokens the turn, as in Harmony and Solar.
bool ends_parts(const Vocab& vocab) {
  return (has(vocab, "<|return|>") && has(vocab, "<|call|>")) ||
         (has(vocab, "<|flush|>") && (has(vocab, "<|call|>") || has(vocab, "<|calls|>")));
}

}  // namespace

void add_turn_ends(OrdinaryEnds ordinary, Vocab& vocab) {
  const bool only_parts = ends_parts(vocab);
  for (uint32_t token = 0; token < vocab.pieces.size(); ++token) {
    const std::string& piece = vocab.pieces[token];
    if (std::ranges::find(kTurnEnds, piece) == kTurnEnds.end()) continue;
    if (piece == kEnd && only_parts) continue;
    if (ordinary == OrdinaryEnds::become_control && vocab.types[token] != TokenType::user_defined)
      make_control(token, vocab);
    if (std::ranges::find(vocab.end_tokens, token) == vocab.end_tokens.end())
      vocab.end_tokens.push_back(token);
  }
}

}  // namespace tierd
