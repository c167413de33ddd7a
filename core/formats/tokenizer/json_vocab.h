// Vocabularies in JSON. VocabBuilder collects "piece": id pairs, in any order and with gaps.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "core/base/result.h"
#include "core/model/text/vocab.h"

namespace tierd {

class VocabBuilder {
 public:
  // `file` is named in errors.
  explicit VocabBuilder(std::string file) : file_(std::move(file)) {}

  // Adds an object of piece to id; `key` is its position in the file, empty for the root.
  Status add_pieces(const nlohmann::json& pieces, const std::string& key);
  // Adds a token, or sets the type of an existing one.
  Status add_token(const nlohmann::json& id, const std::string& piece, TokenType type,
                   const std::string& key);

  // Ids without a piece become unused tokens "[PAD<id>]".
  Result<Vocab> build() &&;

 private:
  struct Token {
    std::string piece;
    TokenType type = TokenType::normal;
  };
  std::string file_;
  std::map<uint32_t, Token> tokens_;
};

// read_tokenizer_json for a file that is parsed already.
Result<Vocab> vocab_of_tokenizer_json(const std::string& path, const nlohmann::json& root);

}  // namespace tierd
