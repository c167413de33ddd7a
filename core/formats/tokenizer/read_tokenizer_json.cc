// Reads Hugging Face's tokenizer.json with a BPE model. Each field is obeyed, or refused by name.
#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "core/base/json_fields.h"
#include "core/base/log.h"
#include "core/base/utf8.h"
#include "core/formats/tokenizer/added_tokens.h"
#include "core/formats/tokenizer/json_vocab.h"
#include "core/formats/tokenizer/special_tokens.h"
#include "core/formats/tokenizer/tokenizer_files.h"
#include "core/formats/tokenizer/tokenizer_json_forms.h"
#include "core/formats/tokenizer/tokenizer_json_parts.h"
#include "core/formats/tokenizer/tokenizer_json_steps.h"
#include "core/model/text/sentencepiece_bpe.h"

namespace tierd {
namespace {

using nlohmann::json;

class TokenizerJson {
 public:
  TokenizerJson(const std::string& path, const json& root)
      : path_(path), root_(root), parts_(path, root), steps_(path, root) {}

  Result<Vocab> read() {
    const json* model = json_member(root_, "model");
    if (model == nullptr) return fail(Code::corrupt, "the key model is missing; expected a tokenizer.json");
    TIERD_TRY(check_model(*model));
    TIERD_TRY(read_tokens(model->at("vocab")));
    TIERD_TRY(read_merges(model->at("merges")));
    TIERD_TRY(read_options(*model));
    TIERD_TRY(read_steps());
    if (!becomes_byte_bpe(options_, vocab_)) becomes_sentencepiece_bpe(options_, merges_, vocab_);
    TIERD_TRY(check_unknown());
    TIERD_TRY(parts_.read_post_processor(vocab_));
    parts_.warn_of_ignored_fields();
    const uint32_t begin = vocab_.add_bos ? vocab_.bos : kNoToken;
    TIERD_TRY(apply_special_token_files(path_, vocab_));
    // The template's BOS wins over bos_token, which is the model's.
    if (begin != kNoToken) vocab_.bos = begin;
    return std::move(vocab_);
  }

 private:
  Error fail(Code code, std::string detail) const { return parts_.fail(code, std::move(detail)); }

  Status has_only(const json& object, const std::string& part,
                  std::initializer_list<std::string_view> keys) const {
    if (!object.is_object()) return {};
    for (const auto& [key, value] : object.items()) {
      if (std::ranges::find(keys, key) == keys.end())
        return fail(Code::unsupported,
                    fmt::format("{}: the field \"{}\" is not supported", part, shown(key)));
    }
    return {};
  }

  Status check_model(const json& model) const {
    const json* merges = json_member(model, "merges");
    const std::string type = json_text(model, "type");
    if (type != "BPE" && !(type.empty() && merges != nullptr)) {
      return fail(Code::unsupported, fmt::format("model.type is \"{}\"; supported is BPE", shown(type)));
    }
    if (json_member(model, "vocab") == nullptr || merges == nullptr)
      return fail(Code::corrupt, "model.vocab or model.merges is missing");
    TIERD_TRY(has_only(model, "model",
                       {"type", "dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix",
                        "fuse_unk", "byte_fallback", "ignore_merges", "vocab", "merges"}));
    for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"}) {
      if (!json_text(model, key).empty())
        return fail(Code::unsupported, fmt::format("model.{} is not supported", key));
    }
    if (const json* dropout = json_member(model, "dropout"); dropout != nullptr && *dropout != 0)
      return fail(Code::unsupported, "model.dropout is not supported, because tokens would be random");
    return {};
  }

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
      TIERD_TRY(has_only(token, part,
                         {"id", "content", "special", "normalized", "lstrip", "rstrip", "single_word"}));
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
    vocab_.kind = VocabKind::ranked_bpe;
    vocab_.pre_tokenizer.clear();
    vocab_.add_space_prefix = false;
    vocab_.added_tokens = std::move(added_tokens);
    return {};
  }

  Result<Merge> read_merge(const json& merge) const {
    if (merge.is_string()) {
      const auto& text = merge.get_ref<const std::string&>();
      const size_t space = text.find(' ');
      if (space != std::string::npos && space > 0 && space + 1 < text.size() &&
          text.find(' ', space + 1) == std::string::npos)
        return Merge(text.substr(0, space), text.substr(space + 1));
    } else if (merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string()) {
      return Merge(merge[0].get<std::string>(), merge[1].get<std::string>());
    }
    return fail(Code::corrupt, "expected \"left right\" or [\"left\", \"right\"]");
  }

  // Accepts both forms: "a b" and ["a", "b"]. The last of equal merges counts.
  Status read_merges(const json& merges) {
    if (!merges.is_array()) return fail(Code::corrupt, "model.merges: expected a list");
    std::unordered_map<std::string, size_t> last;
    std::vector<Merge> all;
    for (const json& merge : merges) {
      const auto of_this = [&](const std::string& detail) {
        return fmt::format("model.merges[{}]: {}", all.size(), detail);
      };
      Result<Merge> read = read_merge(merge);
      if (!read.ok()) return fail(read.error().code, of_this(read.error().detail));
      for (const std::string& part : {read->first, read->second}) {
        if (part.empty()) return fail(Code::corrupt, of_this("a part is empty"));
        if (part.find(' ') != std::string::npos)
          return fail(Code::unsupported, of_this(fmt::format("the space in \"{}\" is not supported; a step "
                                                             "can write spaces as another character",
                                                             shown(part))));
      }
      last[read->first + " " + read->second] = all.size();
      all.push_back(std::move(*read));
    }
    for (size_t i = 0; i < all.size(); ++i) {
      const std::string text = all[i].first + " " + all[i].second;
      if (last.at(text) != i) continue;
      vocab_.merges.push_back(text);
      merges_.push_back(std::move(all[i]));
    }
    return {};
  }

  Status read_options(const json& model) {
    TIERD_ASSIGN(options_.byte_fallback, parts_.flag(model, "byte_fallback", false, "model"));
    TIERD_ASSIGN(options_.fuse_unknown, parts_.flag(model, "fuse_unk", false, "model"));
    TIERD_ASSIGN(options_.ignore_merges, parts_.flag(model, "ignore_merges", false, "model"));
    vocab_.fuse_unknown = options_.fuse_unknown;
    vocab_.whole_words_first = options_.ignore_merges;
    unknown_ = json_text(model, "unk_token");
    const json* const unknown = json_member(model.at("vocab"), unknown_.c_str());
    if (!unknown_.empty() && unknown != nullptr) vocab_.unknown = unknown->get<uint32_t>();
    return options_.byte_fallback ? read_bytes() : Status();
  }

  // An unknown token that the model lacks is an error of the package in texts that need it.
  Status check_unknown() const {
    const bool has_bytes = vocab_.kind == VocabKind::byte_bpe
                               ? has_byte_alphabet(vocab_)
                               : std::ranges::count(vocab_.types, TokenType::byte) == 256;
    if (unknown_.empty() || vocab_.unknown != kNoToken || has_bytes) return {};
    return fail(Code::unsupported,
                fmt::format("model.unk_token: \"{}\" is not in model.vocab", shown(unknown_)));
  }

  // Without byte tokens every unknown character becomes the unknown token.
  Status read_bytes() {
    uint32_t count = 0;
    for (uint32_t token = 0; token < vocab_.pieces.size(); ++token) {
      if (byte_of_piece(vocab_.pieces[token]) < 0) continue;
      vocab_.types[token] = TokenType::byte;
      ++count;
    }
    if (count == 0 || count == 256) return {};
    return fail(
        Code::unsupported,
        fmt::format("model.byte_fallback: the vocabulary has {} of the 256 byte tokens, expected all or none",
                    count));
  }

  Status read_steps() {
    TIERD_ASSIGN(vocab_.normalizers, steps_.normalizers());
    TIERD_ASSIGN(vocab_.cuts, steps_.pre_tokenizers());
    TIERD_ASSIGN(vocab_.decoders, steps_.decoders());
    drop_cuts_without_effect();
    TIERD_TRY(check_first_prefix());
    if (vocab_.decoders.empty()) TIERD_TRY(take_inverse_as_decoder());
    return {};
  }

  // Gemma's normalizer leaves no space at which its pre-tokenizer could cut.
  void drop_cuts_without_effect() {
    const auto replaces_spaces = [](const TextStep& step) {
      return step.kind == TextStepKind::replace && !step.regex && step.pattern == " " &&
             step.content.find(' ') == std::string::npos;
    };
    if (vocab_.normalizers.empty() || !replaces_spaces(vocab_.normalizers.back())) return;
    while (!vocab_.cuts.empty()) {
      const TextStep& first = vocab_.cuts.front();
      if (first.kind != TextStepKind::split || first.regex || first.invert || first.pattern != " ") return;
      vocab_.cuts.erase(vocab_.cuts.begin());
    }
  }

  // The package tells whether a text is the first by its offset in the original text, which these
  // normalizers change.
  Status check_first_prefix() const {
    const auto first = [](const TextStep& step) { return step.prefix == SpacePrefix::first; };
    if (std::ranges::none_of(vocab_.cuts, first)) return {};
    for (const TextStep& step : vocab_.normalizers) {
      const bool moves = step.kind == TextStepKind::strip || step.kind == TextStepKind::strip_accents ||
                         step.kind == TextStepKind::replace || step.kind == TextStepKind::prepend;
      if (moves)
        return fail(Code::unsupported,
                    fmt::format("pre_tokenizer Metaspace: prepend_scheme \"first\" is not supported together "
                                "with the normalizer {}",
                                name(step.kind)));
    }
    return {};
  }

  // A file without a decoder gets the one that undoes its pre-tokenizer.
  Status take_inverse_as_decoder() {
    std::string mark;
    SpacePrefix prefix = SpacePrefix::never;
    for (const TextStep& step : vocab_.normalizers) {
      if (step.kind == TextStepKind::replace && !step.regex && step.pattern == " ") mark = step.content;
      if (step.kind == TextStepKind::prepend) prefix = SpacePrefix::always;
    }
    for (const TextStep& step : vocab_.cuts) {
      if (step.kind == TextStepKind::metaspace) mark = step.content, prefix = step.prefix;
    }
    if (!vocab_.cuts.empty() && vocab_.cuts.back().kind == TextStepKind::byte_level) {
      vocab_.decoders = {{.kind = TextStepKind::byte_level}};
    } else if (!mark.empty()) {
      vocab_.decoders = {{.kind = TextStepKind::replace, .pattern = mark, .content = " "},
                         {.kind = TextStepKind::byte_fallback},
                         {.kind = TextStepKind::fuse}};
      if (prefix != SpacePrefix::never)
        vocab_.decoders.push_back({.kind = TextStepKind::strip, .content = " ", .begin = 1});
    } else {
      return fail(Code::unsupported, "decoder: missing; expected the steps that turn tokens into text");
    }
    say_once(path_ + ": decoder: missing; tokens become text by the inverse of the pre_tokenizer");
    return {};
  }

  const std::string& path_;
  const json& root_;
  TokenizerJsonParts parts_;
  TokenizerJsonSteps steps_;
  BpeOptions options_;
  std::string unknown_;
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
