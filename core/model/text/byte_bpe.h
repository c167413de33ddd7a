// Byte-level BPE: words of bytes, merged by rank.
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
#include "core/model/text/token_finder.h"
#include "core/model/text/tokenizer.h"

namespace tierd {

class ByteBpe final : public Tokenizer {
 public:
  // `vocab` must have passed the checks of make_tokenizer.
  static Result<std::unique_ptr<Tokenizer>> make(Vocab vocab, std::string_view origin);

  std::vector<uint32_t> encode(std::string_view text, bool add_special, bool parse_special) const override;
  std::string piece(uint32_t token, bool special) const override;
  bool drops_first_space() const override { return false; }

 private:
  ByteBpe(Vocab vocab, Normalizer normalizer, PreTokenizer pre_tokenizer)
      : Tokenizer(std::move(vocab)),
        normalizer_(std::move(normalizer)),
        pre_tokenizer_(std::move(pre_tokenizer)) {}

  void index_tokens();
  void encode_word(std::string_view word, std::vector<MergeSymbol>& symbols,
                   std::vector<uint32_t>& out) const;

  Normalizer normalizer_;
  PreTokenizer pre_tokenizer_;
  bool whole_words_first_ = false;
  std::array<uint32_t, 256> byte_tokens_{};                // kNoToken: left out
  std::unordered_map<std::string_view, uint32_t> tokens_;  // keys point into vocab_
  std::vector<bool> mergeable_;                            // by token
  MergeTable merges_;
  TokenFinders user_defined_;
  TokenFinders control_and_user_defined_;
};

}  // namespace tierd
