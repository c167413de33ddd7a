#include "core/formats/tokenizer/json_vocab.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "core/base/utf8.h"

namespace tierd {

Status VocabBuilder::add_pieces(const nlohmann::json& pieces, const std::string& key) {
  const std::string prefix = key.empty() ? "" : key + ": ";
  if (!pieces.is_object()) {
    return Error{Code::corrupt, file_,
                 fmt::format("{}expected an object, found {}", prefix, pieces.type_name())};
  }
  for (const auto& [piece, id] : pieces.items()) TIERD_TRY(add_token(id, piece, TokenType::normal, key));
  return {};
}

Status VocabBuilder::add_token(const nlohmann::json& id, const std::string& piece, TokenType type,
                               const std::string& key) {
  const std::string prefix = key.empty() ? "" : key + ": ";
  if (!id.is_number_unsigned() || id.get<uint64_t>() >= kNoToken) {
    return Error{Code::corrupt, file_,
                 fmt::format("{}the id of \"{}\" is {}; expected a whole number from 0", prefix, shown(piece),
                             id.is_number() ? id.dump() : id.type_name())};
  }
  const auto [it, added] = tokens_.try_emplace(id.get<uint32_t>(), Token{piece, type});
  if (!added && it->second.piece != piece) {
    return Error{Code::corrupt, file_,
                 fmt::format("{}\"{}\" and \"{}\" both have id {}", prefix, shown(it->second.piece),
                             shown(piece), it->first)};
  }
  it->second.type = type;
  return {};
}

Result<Vocab> VocabBuilder::build() && {
  if (tokens_.empty()) return Error{Code::corrupt, file_, "the vocabulary is empty"};
  const uint64_t count = uint64_t{tokens_.rbegin()->first} + 1;
  // Real vocabularies have few gaps; one wrong id must not fill the memory with padding.
  if (count > 2 * tokens_.size() + 1024) {
    return Error{
        Code::corrupt, file_,
        fmt::format("the greatest id is {}, but there are only {} tokens", count - 1, tokens_.size())};
  }
  Vocab vocab;
  vocab.pieces.reserve(count);
  vocab.types.reserve(count);
  for (auto& [id, token] : tokens_) {
    while (vocab.pieces.size() < id) {
      vocab.pieces.push_back(fmt::format("[PAD{}]", vocab.pieces.size()));
      vocab.types.push_back(TokenType::unused);
    }
    vocab.pieces.push_back(std::move(token.piece));
    vocab.types.push_back(token.type);
  }
  return vocab;
}

}  // namespace tierd
