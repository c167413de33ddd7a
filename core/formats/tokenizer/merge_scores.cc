#include "core/formats/tokenizer/merge_scores.h"

#include <fmt/format.h>

#include <string_view>
#include <unordered_map>

#include "core/base/utf8.h"

namespace tierd {
namespace {

// The longest piece: pieces are tried at every cut. The longest in use are runs of 32 spaces.
constexpr size_t kMaxPieceBytes = 1024;

}  // namespace

Status set_scores_from_merges(const std::vector<Merge>& merges, const std::string& origin, Vocab& vocab) {
  const std::vector<bool> mergeable = mergeable_tokens(vocab);
  std::unordered_map<std::string_view, uint32_t> tokens;
  for (uint32_t token = 0; token < vocab.pieces.size(); ++token) {
    if (mergeable[token]) tokens.emplace(vocab.pieces[token], token);
  }
  std::vector<uint32_t> ways(vocab.pieces.size(), 0);  // by piece: number of merges that result in it
  vocab.scores.assign(vocab.pieces.size(), -static_cast<float>(merges.size() + 1));
  uint32_t last = kNoToken;
  for (size_t rank = 0; rank < merges.size(); ++rank) {
    const auto& [left, right] = merges[rank];
    const std::string whole = left + right;
    for (const std::string& part : {left, right, whole}) {
      if (!tokens.contains(part)) {
        return Error{
            Code::corrupt, origin,
            fmt::format("model.merges[{}] needs \"{}\", which is not in the vocabulary", rank, shown(part))};
      }
    }
    const uint32_t token = tokens.at(whole);
    if (token != last && ways[token] > 0) {
      return Error{Code::unsupported, origin,
                   fmt::format("model.merges[{}]: the merges that result in \"{}\" are not consecutive", rank,
                               shown(whole))};
    }
    if (++ways[token] == 1) vocab.scores[token] = -static_cast<float>(rank);
    last = token;
  }

  for (const auto& [piece, token] : tokens) {
    if (piece.size() > kMaxPieceBytes) {
      return Error{
          Code::unsupported, origin,
          fmt::format("token {} has {} bytes, expected at most {}", token, piece.size(), kMaxPieceBytes)};
    }
    uint32_t possible = 0;
    for (size_t cut = 1; cut < piece.size(); ++cut) {
      if (tokens.contains(piece.substr(0, cut)) && tokens.contains(piece.substr(cut))) ++possible;
    }
    if (possible != ways[token]) {
      return Error{Code::unsupported, origin,
                   fmt::format("\"{}\" can be merged from {} pairs of pieces, but model.merges has {} of "
                               "them; expected the merges of a sentencepiece model",
                               shown(piece), possible, ways[token])};
    }
  }
  return {};
}

}  // namespace tierd
