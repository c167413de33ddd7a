// Reads Hugging Face's tokenizer.json if it describes one of the two kinds: byte-level BPE, or a
// sentencepiece model written as ranked merges. Other steps in its pipeline would change the tokens and are
// refused by name.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <unordered_set>

#include "core/base/json_fields.h"
#include "core/base/utf8.h"
#include "core/formats/tokenizer/json_vocab.h"
#include "core/formats/tokenizer/merge_scores.h"
#include "core/formats/tokenizer/special_tokens.h"
#include "core/formats/tokenizer/tokenizer_files.h"
#include "core/formats/tokenizer/tokenizer_json_parts.h"
#include "core/model/text/byte_alphabet.h"
#include "core/model/text/sentencepiece_bpe.h"

namespace tierd {
namespace {

using nlohmann::json;

class TokenizerJson {
 public:
  TokenizerJson(const std::string& path, const json& root) : path_(path), root_(root), parts_(path, root) {}

  Result<Vocab> read() {
    const json* model = json_member(root_, "model");
    if (model == nullptr) return fail(Code::corrupt, "the key model is missing; expected a tokenizer.json");
    const json* vocab = json_member(*model, "vocab");
    const json* merges = json_member(*model, "merges");
    const std::string type = json_text(*model, "type");
    if (type != "BPE" && !(type.empty() && merges != nullptr)) {
      return fail(Code::unsupported, fmt::format("model.type is \"{}\"; supported is BPE", shown(type)));
    }
    if (vocab == nullptr || merges == nullptr)
      return fail(Code::corrupt, "model.vocab or model.merges is missing");
    for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"}) {
      if (!json_text(*model, key).empty())
        return fail(Code::unsupported, fmt::format("model.{} is not supported", key));
    }
    if (const json* dropout = json_member(*model, "dropout"); dropout != nullptr && *dropout != 0)
      return fail(Code::unsupported, "model.dropout is not supported, because tokens would be random");
    TIERD_TRY(read_tokens(*vocab));
    TIERD_TRY(read_merges(*merges));
    TIERD_TRY(keep_reachable_pieces(*model));
    const bool byte_level = parts_.is_byte_level();
    TIERD_TRY(byte_level ? read_byte_level(*model) : read_sentencepiece(*model));
    TIERD_TRY(parts_.check_decoder(byte_level));
    TIERD_TRY(parts_.read_post_processor(vocab_));
    parts_.warn_of_lengths();
    const uint32_t begin = vocab_.add_bos ? vocab_.bos : kNoToken;
    TIERD_TRY(apply_special_token_files(path_, vocab_));
    // The template's BOS wins over bos_token, which is the model's.
    if (begin != kNoToken) vocab_.bos = begin;
    return std::move(vocab_);
  }

 private:
  Error fail(Code code, std::string detail) const { return parts_.fail(code, std::move(detail)); }

  Status read_tokens(const json& vocab) {
    VocabBuilder builder(path_);
    TIERD_TRY(builder.add_pieces(vocab, "model.vocab"));
    const json* list = json_member(root_, "added_tokens");
    if (list != nullptr && !list->is_array()) return fail(Code::corrupt, "added_tokens: expected a list");
    std::vector<AddedToken> added_tokens;
    for (const json& token : list == nullptr ? json::array() : *list) {
      const json* id = json_member(token, "id");
      const json* content = json_member(token, "content");
      if (id == nullptr || content == nullptr || !content->is_string()) {
        return fail(Code::corrupt, "added_tokens: expected objects with an id and a content");
      }
      const auto& piece = content->get_ref<const std::string&>();
      const std::string part = fmt::format("added_tokens \"{}\"", shown(piece));
      TIERD_ASSIGN(const bool special, parts_.flag(token, "special", false, part));
      AddedToken& added = added_tokens.emplace_back();
      TIERD_ASSIGN(added.normalized, parts_.flag(token, "normalized", !special, part));
      TIERD_ASSIGN(added.lstrip, parts_.flag(token, "lstrip", false, part));
      TIERD_ASSIGN(added.rstrip, parts_.flag(token, "rstrip", false, part));
      TIERD_ASSIGN(added.single_word, parts_.flag(token, "single_word", false, part));
      added.is_piece = vocab.contains(piece);
      const TokenType type = special ? TokenType::control : TokenType::user_defined;
      TIERD_TRY(builder.add_token(*id, piece, type, "added_tokens"));
      added.token = id->get<uint32_t>();
    }
    TIERD_ASSIGN(vocab_, std::move(builder).build());
    vocab_.added_tokens = std::move(added_tokens);
    return {};
  }

  // Accepts both forms: "a b" and ["a", "b"].
  Status read_merges(const json& merges) {
    if (!merges.is_array()) return fail(Code::corrupt, "model.merges: expected a list");
    merges_.reserve(merges.size());
    for (const json& merge : merges) {
      if (merge.is_string()) {
        const auto& text = merge.get_ref<const std::string&>();
        const size_t space = text.find(' ');
        if (space != std::string::npos && space > 0 && space + 1 < text.size() &&
            text.find(' ', space + 1) == std::string::npos) {
          merges_.emplace_back(text.substr(0, space), text.substr(space + 1));
          continue;
        }
      } else if (merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string()) {
        merges_.emplace_back(merge[0].get<std::string>(), merge[1].get<std::string>());
        continue;
      }
      return fail(
          Code::corrupt,
          fmt::format("model.merges[{}]: expected \"left right\" or [\"left\", \"right\"]", merges_.size()));
    }
    return {};
  }

  // Marks the added tokens of model.vocab that merging can also produce.
  Status keep_reachable_pieces(const json& model) {
    TIERD_ASSIGN(const bool ignore_merges, parts_.flag(model, "ignore_merges", false, "model"));
    if (ignore_merges) return {};
    std::unordered_set<std::string> merged;
    for (const auto& [left, right] : merges_) merged.insert({left, right, left + right});
    for (AddedToken& added : *vocab_.added_tokens) {
      const std::string& piece = vocab_.pieces[added.token];
      const bool character = !piece.empty() && utf8_character_bytes(piece, 0) == piece.size();
      added.is_piece = added.is_piece && (character || merged.contains(piece));
    }
    return {};
  }

  Status read_byte_level(const json& model) {
    vocab_.kind = VocabKind::byte_bpe;
    vocab_.add_space_prefix = false;
    TIERD_ASSIGN(const bool ignore_merges, parts_.flag(model, "ignore_merges", false, "model"));
    TIERD_TRY(parts_.read_byte_level(ignore_merges, vocab_));
    for (const auto& [left, right] : merges_) vocab_.merges.push_back(left + " " + right);
    return read_missing_bytes(model);
  }

  // Bytes that the vocabulary lacks become the unknown token, or are left out.
  Status read_missing_bytes(const json& model) {
    const std::string unknown = json_text(model, "unk_token");
    const auto token_of = [&](const std::string& piece) { return std::ranges::find(vocab_.pieces, piece); };
    bool whole = true;
    for (uint32_t byte = 0; byte < 256 && whole; ++byte)
      whole = token_of(byte_character(static_cast<uint8_t>(byte))) != vocab_.pieces.end();
    if (whole) return {};
    for (const char* key : {"fuse_unk", "byte_fallback"}) {
      TIERD_ASSIGN(const bool set, parts_.flag(model, key, false, "model"));
      if (set)
        return fail(Code::unsupported,
                    fmt::format("model.{} is not supported with a vocabulary that lacks bytes", key));
    }
    if (const auto found = token_of(unknown); !unknown.empty() && found != vocab_.pieces.end())
      vocab_.unknown = static_cast<uint32_t>(found - vocab_.pieces.begin());
    return {};
  }

  Status read_sentencepiece(const json& model) {
    vocab_.kind = VocabKind::sentencepiece_bpe;
    TIERD_TRY(parts_.read_space_rule(vocab_));
    TIERD_ASSIGN(const bool ignore_merges, parts_.flag(model, "ignore_merges", false, "model"));
    if (ignore_merges)
      return fail(Code::unsupported,
                  "model.ignore_merges is not supported where spaces are written as \"▁\"");
    TIERD_ASSIGN(const bool bytes, parts_.flag(model, "byte_fallback", false, "model"));
    TIERD_ASSIGN(const bool fuses, parts_.flag(model, "fuse_unk", false, "model"));
    const std::string unknown = json_text(model, "unk_token");
    uint32_t byte_tokens = 0;
    for (uint32_t token = 0; token < vocab_.pieces.size(); ++token) {
      const std::string& piece = vocab_.pieces[token];
      if (bytes && byte_of_piece(piece) >= 0) {
        vocab_.types[token] = TokenType::byte;
        ++byte_tokens;
      }
      if (!unknown.empty() && piece == unknown) {
        vocab_.types[token] = TokenType::unknown;
        vocab_.unknown = token;
      }
    }
    // Without byte tokens every unknown character becomes the unknown token.
    if (bytes && byte_tokens != 0 && byte_tokens != 256) {
      return fail(
          Code::unsupported,
          fmt::format(
              "model.byte_fallback: the vocabulary has {} of the 256 byte tokens, expected all or none",
              byte_tokens));
    }
    if (byte_tokens == 0 && !fuses)
      return fail(Code::unsupported,
                  "neither model.byte_fallback nor model.fuse_unk is true; expected one of them");
    if (byte_tokens == 0 && vocab_.unknown == kNoToken)
      return fail(Code::unsupported,
                  "model.unk_token is not in the vocabulary, which has no byte tokens either; some text "
                  "would have no tokens");
    mark_normalized_tokens();
    return set_scores_from_merges(merges_, path_, vocab_);
  }

  // Sets found_as of tokens that are matched after the normalizers to their normalized text.
  void mark_normalized_tokens() {
    if (vocab_.metaspace) return;
    for (AddedToken& added : *vocab_.added_tokens) {
      const std::string& piece = vocab_.pieces[added.token];
      if (added.normalized && !piece.empty())
        added.found_as = with_space_marks(piece, vocab_.add_space_prefix);
    }
  }

  const std::string& path_;
  const json& root_;
  TokenizerJsonParts parts_;
  std::vector<Merge> merges_;
  Vocab vocab_;
};

}  // namespace

Result<Vocab> vocab_of_tokenizer_json(const std::string& path, const json& root) {
  return TokenizerJson(path, root).read();
}

Result<Vocab> read_tokenizer_json(const std::string& path) {
  TIERD_ASSIGN(const json root, read_json_file(path, kMaxTokenizerFileBytes));
  return vocab_of_tokenizer_json(path, root);
}

}  // namespace tierd
