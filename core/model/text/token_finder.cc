#include "core/model/text/token_finder.h"

#include "core/model/text/characters.h"

namespace tierd {
namespace {

bool is_found_whole(TokenType type, bool control) {
  if (type == TokenType::user_defined) return true;
  return control && (type == TokenType::control || type == TokenType::unknown);
}

}  // namespace

void TokenFinder::add(std::string_view found_as, const AddedToken& rules) {
  pieces_.add(found_as, rules.token);
  if (rules.lstrip || rules.rstrip || rules.single_word) rules_[rules.token] = rules;
}

std::vector<TokenFinder::Found> TokenFinder::find(std::string_view text) const {
  std::vector<Found> all;
  if (pieces_.empty()) return all;
  size_t done = 0;
  size_t spaces_end = 0;
  for (size_t at = 0; at < text.size();) {
    const PieceMatcher::Match match = pieces_.longest_at(text, at);
    if (match.bytes == 0) {
      ++at;
      continue;
    }
    Found found{match.token, at, at + match.bytes};
    at = found.end;
    if (const auto it = rules_.find(match.token); it != rules_.end()) {
      const AddedToken& rules = it->second;
      if (rules.single_word &&
          (ends_with_word(text.substr(0, found.begin)) || begins_with_word(text.substr(found.end)))) {
        continue;
      }
      if (rules.lstrip && found.begin > done)
        found.begin -= space_bytes_at_end(text.substr(done, found.begin - done));
      if (rules.rstrip) {
        // White space is scanned once, even if tokens are white space themselves.
        if (found.end >= spaces_end) spaces_end = found.end + space_bytes_at_begin(text.substr(found.end));
        found.end = spaces_end;
      }
    }
    all.push_back(found);
    done = std::max(done, found.end);
  }
  return all;
}

TokenFinders TokenFinders::of(const Vocab& vocab, bool control) {
  TokenFinders finders;
  if (vocab.added_tokens) {
    for (const AddedToken& added : *vocab.added_tokens) {
      if (!is_found_whole(vocab.types[added.token], control)) continue;
      const std::string& found_as = added.found_as.empty() ? vocab.pieces[added.token] : added.found_as;
      (added.normalized ? finders.second : finders.first).add(found_as, added);
    }
    return finders;
  }
  for (uint32_t token = 0; token < vocab.pieces.size(); ++token) {
    if (!is_found_whole(vocab.types[token], control)) continue;
    // sentencepiece matches user-defined symbols after spaces are marked.
    const bool marked =
        vocab.kind == VocabKind::sentencepiece_bpe && vocab.types[token] == TokenType::user_defined;
    (marked ? finders.second : finders.first).add(vocab.pieces[token], AddedToken{.token = token});
  }
  return finders;
}

}  // namespace tierd
