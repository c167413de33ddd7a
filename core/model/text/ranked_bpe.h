// The BPE of a tokenizer.json: the characters of words are merged by rank, after and before any steps.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/model/text/merge_table.h"
#include "core/model/text/normalizer.h"
#include "core/model/text/pre_tokenizer.h"
#include "core/model/text/token_decoder.h"
#include "core/model/text/token_finder.h"
#include "core/model/text/tokenizer.h"

namespace tierd {

class RankedBpe final : public Tokenizer {
 public:
  // `vocab` must have passed the checks of make_tokenizer.
  static Result<std::unique_ptr<Tokenizer>> make(Vocab vocab, std::string_view origin);

  std::vector<uint32_t> encode(std::string_view text, bool add_special, bool parse_special) const override;
  std::string piece(uint32_t token, bool special) const override;
  std::string decode(const std::vector<uint32_t>& tokens, bool special) const override;
  bool drops_first_space() const override { return decoder_.drops_first_space(); }

 private:
  RankedBpe(Vocab vocab, Normalizer normalizer, PreTokenizer pre_tokenizer, TokenDecoder decoder)
      : Tokenizer(std::move(vocab)),
        normalizer_(std::move(normalizer)),
        pre_tokenizer_(std::move(pre_tokenizer)),
        decoder_(std::move(decoder)) {
    byte_tokens_.fill(kNoToken);
  }

  Status index_tokens(std::string_view origin);
  void encode_word(std::string_view word, std::vector<MergeSymbol>& symbols,
                   std::vector<uint32_t>& out) const;
  void append_symbols(std::string_view word, std::vector<MergeSymbol>& symbols) const;
  bool is_hidden(uint32_t token, bool special) const;

  Normalizer normalizer_;
  PreTokenizer pre_tokenizer_;
  TokenDecoder decoder_;
  std::unordered_map<std::string_view, uint32_t> tokens_;  // of the model; keys point into vocab_
  MergeTable merges_;
  std::array<uint32_t, 256> byte_tokens_;
  bool has_bytes_ = false;
  TokenFinders user_defined_;
  TokenFinders control_and_user_defined_;
};

}  // namespace tierd
