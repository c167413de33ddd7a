#include "core/formats/tokenizer/tokenizer_json_forms.h"

#include <algorithm>
#include <unordered_set>

#include "core/base/utf8.h"
#include "core/model/text/byte_alphabet.h"
#include "core/model/text/pre_tokenizer_rules.h"
#include "core/model/text/sentencepiece_bpe.h"

namespace tierd {
namespace {

bool is_replacing(const TextStep& step, std::string_view from, std::string_view to) {
  return step.kind == TextStepKind::replace && !step.regex && step.pattern == from && step.content == to;
}

// The rule for spaces of a sentencepiece model.
struct SpaceRule {
  bool metaspace = false;
  bool prefix = false;
  bool first_only = false;
  bool cuts = false;
};

bool read_space_rule(const Vocab& vocab, SpaceRule& rule) {
  if (vocab.cuts.empty()) {
    bool marks = false;
    for (const TextStep& step : vocab.normalizers) {
      if (step.kind == TextStepKind::prepend && step.content == kSpaceMark && !rule.prefix) {
        rule.prefix = true;
      } else if (is_replacing(step, " ", kSpaceMark) && !marks) {
        marks = true;
      } else {
        return false;
      }
    }
    return marks;
  }
  const TextStep& step = vocab.cuts.front();
  if (vocab.cuts.size() > 1 || !vocab.normalizers.empty() || step.kind != TextStepKind::metaspace ||
      step.content != kSpaceMark)
    return false;
  rule = {true, step.prefix != SpacePrefix::never, step.prefix == SpacePrefix::first, step.cuts};
  return true;
}

// Returns whether the steps write spaces for "▁", and leave out the space that `prefix` has added.
bool is_decoder_of(const std::vector<TextStep>& steps, bool prefix) {
  bool fused = false;
  bool replaced = false;
  bool stripped = false;
  for (const TextStep& step : steps) {
    if (step.kind == TextStepKind::fuse) {
      fused = true;
    } else if (is_replacing(step, kSpaceMark, " ") && !replaced && !stripped) {
      replaced = true;
    } else if (step == TextStep{.kind = TextStepKind::strip, .content = " ", .begin = 1} && fused &&
               !stripped) {
      stripped = true;
    } else if (step.kind != TextStepKind::byte_fallback) {
      return false;
    }
  }
  return replaced && stripped == prefix;
}

// Added tokens that merging can also produce: single characters, and parts and results of merges.
void keep_reachable(const std::vector<Merge>& merges, Vocab& vocab) {
  std::unordered_set<std::string> merged;
  for (const auto& [left, right] : merges) merged.insert({left, right, left + right});
  for (AddedToken& added : *vocab.added_tokens) {
    const std::string& piece = vocab.pieces[added.token];
    const bool character = !piece.empty() && utf8_character_bytes(piece, 0) == piece.size();
    added.is_piece = added.is_piece && (character || merged.contains(piece));
  }
}

}  // namespace

bool has_byte_alphabet(const Vocab& vocab) {
  const std::unordered_set<std::string_view> pieces(vocab.pieces.begin(), vocab.pieces.end());
  for (uint32_t byte = 0; byte < 256; ++byte) {
    if (!pieces.contains(byte_character(static_cast<uint8_t>(byte)))) return false;
  }
  return true;
}

bool becomes_byte_bpe(const BpeOptions& options, Vocab& vocab) {
  const bool decodes = vocab.decoders.size() == 1 && vocab.decoders.front().kind == TextStepKind::byte_level;
  const bool last = !vocab.cuts.empty() && vocab.cuts.back().kind == TextStepKind::byte_level;
  const auto writes = [](const TextStep& step) { return step.kind == TextStepKind::byte_level; };
  if (!decodes || !last || std::ranges::count_if(vocab.cuts, writes) != 1) return false;
  // Bytes that the vocabulary lacks become the unknown token, or are left out, one by one.
  if ((options.byte_fallback || options.fuse_unknown) && !has_byte_alphabet(vocab)) return false;
  vocab.kind = VocabKind::byte_bpe;
  vocab.decoders.clear();
  const PreTokenizerRule* const rule = find_pre_tokenizer_rule(vocab.cuts, options.ignore_merges);
  vocab.pre_tokenizer = rule == nullptr ? std::string() : std::string(rule->name);
  if (rule != nullptr) vocab.cuts.clear();
  vocab.whole_words_first = rule == nullptr && options.ignore_merges;
  vocab.fuse_unknown = false;
  return true;
}

bool becomes_sentencepiece_bpe(const BpeOptions& options, const std::vector<Merge>& merges, Vocab& vocab) {
  SpaceRule rule;
  const bool has_bytes = std::ranges::count(vocab.types, TokenType::byte) == 256;
  if (!has_bytes || options.ignore_merges || !read_space_rule(vocab, rule) ||
      !is_decoder_of(vocab.decoders, rule.prefix))
    return false;
  Vocab made = vocab;
  made.kind = VocabKind::sentencepiece_bpe;
  made.normalizers.clear();
  made.cuts.clear();
  made.decoders.clear();
  made.merges.clear();
  made.fuse_unknown = false;
  made.metaspace = rule.metaspace;
  made.add_space_prefix = rule.prefix;
  made.prefix_text_only = rule.first_only;
  made.split_at_spaces = rule.cuts;
  if (made.unknown != kNoToken) made.types[made.unknown] = TokenType::unknown;
  keep_reachable(merges, made);
  for (AddedToken& added : *made.added_tokens) {
    const std::string& piece = made.pieces[added.token];
    if (added.normalized && !rule.metaspace && !piece.empty())
      added.found_as = with_space_marks(piece, rule.prefix);
  }
  if (!set_scores_from_merges(merges, "", made).ok()) return false;
  vocab = std::move(made);
  return true;
}

}  // namespace tierd
