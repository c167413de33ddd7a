// Hugging Face's tokenizer.json, as far as it describes one of our two kinds: byte-level BPE, or a
// sentencepiece model written as ranked merges. Anything else in its pipeline would change the tokens and is
// refused by name.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/text/input_file.h"
#include "core/text/json_vocab.h"
#include "core/text/merge_scores.h"
#include "core/text/pre_tokenizer.h"
#include "core/text/sentencepiece_bpe.h"
#include "core/text/special_tokens.h"
#include "core/text/tokenizer.h"

namespace tierd {
namespace {

using nlohmann::json;

// nullptr where `object` has no such member, or null.
const json* member(const json& object, const char* key) {
  if (!object.is_object()) return nullptr;
  const auto it = object.find(key);
  return it == object.end() || it->is_null() ? nullptr : &*it;
}

std::string text_member(const json& object, const char* key) {
  const json* value = member(object, key);
  return value != nullptr && value->is_string() ? value->get<std::string>() : std::string();
}

bool flag_member(const json& object, const char* key, bool otherwise) {
  const json* value = member(object, key);
  return value != nullptr && value->is_boolean() ? value->get<bool>() : otherwise;
}

// Normalizers, pre-tokenizers and post-processors come alone or as a Sequence under `list_key`.
std::vector<const json*> steps_of(const json* step, const char* list_key) {
  std::vector<const json*> steps;
  if (step == nullptr) return steps;
  const json* list = text_member(*step, "type") == "Sequence" ? member(*step, list_key) : nullptr;
  if (list == nullptr || !list->is_array()) {
    steps.push_back(step);
  } else {
    for (const json& item : *list) {
      for (const json* inner : steps_of(&item, list_key)) steps.push_back(inner);
    }
  }
  return steps;
}

class TokenizerJson {
 public:
  TokenizerJson(const std::string& path, const json& root)
      : path_(path),
        root_(root),
        normalizers_(steps_of(member(root, "normalizer"), "normalizers")),
        pre_tokenizers_(steps_of(member(root, "pre_tokenizer"), "pretokenizers")) {}

  Result<Vocab> read() {
    const json* model = member(root_, "model");
    if (model == nullptr) return fail(Code::corrupt, "has no model; expected a tokenizer.json");
    const json* vocab = member(*model, "vocab");
    const json* merges = member(*model, "merges");
    const std::string type = text_member(*model, "type");
    if (type != "BPE" && !(type.empty() && merges != nullptr)) {
      return fail(Code::unsupported, fmt::format("model.type is \"{}\"; known is BPE", shown(type)));
    }
    if (vocab == nullptr || merges == nullptr)
      return fail(Code::corrupt, "model.vocab or model.merges is missing");
    for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"}) {
      if (!text_member(*model, key).empty())
        return fail(Code::unsupported, fmt::format("model.{} is not known", key));
    }
    TIERD_TRY(read_tokens(*vocab));
    TIERD_TRY(read_merges(*merges));
    const bool byte_level = std::any_of(pre_tokenizers_.begin(), pre_tokenizers_.end(), [](const json* step) {
      return text_member(*step, "type") == "ByteLevel";
    });
    TIERD_TRY(byte_level ? read_byte_level(*model) : read_sentencepiece(*model));
    read_bos();
    TIERD_TRY(apply_special_token_files(path_, vocab_));
    return std::move(vocab_);
  }

 private:
  Error fail(Code code, std::string detail) const { return Error{code, path_, std::move(detail)}; }

  Status read_tokens(const json& vocab) {
    VocabBuilder builder(path_);
    TIERD_TRY(builder.add_pieces(vocab, "model.vocab"));
    if (const json* added = member(root_, "added_tokens"); added != nullptr) {
      if (!added->is_array()) return fail(Code::corrupt, "added_tokens: expected a list");
      for (const json& token : *added) {
        const json* id = member(token, "id");
        const json* content = member(token, "content");
        if (id == nullptr || content == nullptr || !content->is_string()) {
          return fail(Code::corrupt, "added_tokens: expected objects with an id and a content");
        }
        const TokenType type =
            flag_member(token, "special", false) ? TokenType::control : TokenType::user_defined;
        TIERD_TRY(builder.add_token(*id, content->get_ref<const std::string&>(), type, "added_tokens"));
      }
    }
    TIERD_ASSIGN(vocab_, std::move(builder).build());
    return {};
  }

  // Both forms: "a b" and ["a", "b"].
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

  Status read_byte_level(const json& model) {
    vocab_.kind = VocabKind::byte_bpe;
    vocab_.add_bos = false;
    for (const json* step : normalizers_) {
      // Text is nearly always composed already; composing it is left to whoever writes it.
      const std::string type = text_member(*step, "type");
      if (type != "NFC")
        return fail(Code::unsupported, fmt::format("normalizer \"{}\" is not known", shown(type)));
    }
    std::string steps;
    const auto add_step = [&](const std::string& step) { steps += steps.empty() ? step : "\n" + step; };
    for (const json* step : pre_tokenizers_) {
      const std::string type = text_member(*step, "type");
      if (type == "ByteLevel") {
        if (flag_member(*step, "add_prefix_space", true)) {
          return fail(Code::unsupported, "pre_tokenizer ByteLevel: add_prefix_space is not known");
        }
        if (flag_member(*step, "use_regex", true)) add_step(type);
      } else if (type == "Split") {
        const json* pattern = member(*step, "pattern");
        const bool isolated =
            text_member(*step, "behavior") == "Isolated" && !flag_member(*step, "invert", false);
        if (pattern == nullptr || !isolated) {
          return fail(Code::unsupported, "pre_tokenizer Split: only the behavior Isolated is known");
        }
        add_step("Split " + text_member(*pattern, "Regex"));
      } else {
        add_step(type);
      }
    }
    const std::string_view name = PreTokenizer::name_of_steps(steps);
    if (name.empty()) {
      return fail(Code::unsupported, fmt::format("pre_tokenizer \"{}\" is not one of those known: {}",
                                                 shown(steps), PreTokenizer::known_names()));
    }
    vocab_.pre_tokenizer = name;
    TIERD_ASSIGN(const PreTokenizer rules, PreTokenizer::make(name, path_));
    if (flag_member(model, "ignore_merges", false) && !rules.whole_words_first()) {
      return fail(Code::unsupported,
                  fmt::format("model.ignore_merges is not known with pre-tokenizer {}", name));
    }
    for (const auto& [left, right] : merges_) vocab_.merges.push_back(left + " " + right);
    return {};
  }

  Status read_sentencepiece(const json& model) {
    vocab_.kind = VocabKind::sentencepiece_bpe;
    TIERD_TRY(read_space_rule());
    const bool bytes = flag_member(model, "byte_fallback", false);
    const std::string unknown = text_member(model, "unk_token");
    for (uint32_t token = 0; token < vocab_.pieces.size(); ++token) {
      const std::string& piece = vocab_.pieces[token];
      if (bytes && byte_of_piece(piece) >= 0) vocab_.types[token] = TokenType::byte;
      if (!unknown.empty() && piece == unknown) {
        vocab_.types[token] = TokenType::unknown;
        vocab_.unknown = token;
      }
    }
    if (!bytes && !flag_member(model, "fuse_unk", false)) {
      return fail(Code::unsupported, "neither model.byte_fallback nor model.fuse_unk is set");
    }
    return set_scores_from_merges(merges_, path_, vocab_);
  }

  // Where spaces become "▁": by normalizers (Prepend and Replace), or by a Metaspace pre-tokenizer.
  Status read_space_rule() {
    const std::string mark(kSpaceMark);
    bool replaces = false;
    vocab_.add_space_prefix = false;
    for (const json* step : normalizers_) {
      const std::string type = text_member(*step, "type");
      if (type == "Prepend" && text_member(*step, "prepend") == mark) {
        vocab_.add_space_prefix = true;
        continue;
      }
      const json* pattern = member(*step, "pattern");
      if (type == "Replace" && pattern != nullptr && text_member(*pattern, "String") == " " &&
          text_member(*step, "content") == mark) {
        replaces = true;
        continue;
      }
      return fail(Code::unsupported, fmt::format("normalizer \"{}\" is not known", shown(type)));
    }
    for (const json* step : pre_tokenizers_) {
      const std::string type = text_member(*step, "type");
      if (type != "Metaspace" || text_member(*step, "replacement") != mark ||
          flag_member(*step, "split", true)) {
        return fail(Code::unsupported,
                    fmt::format("pre_tokenizer \"{}\" is not known; expected ByteLevel, or "
                                "Metaspace that does not split",
                                shown(type)));
      }
      const std::string scheme = text_member(*step, "prepend_scheme");
      vocab_.add_space_prefix =
          scheme.empty() ? flag_member(*step, "add_prefix_space", true) : scheme != "never";
      replaces = true;
    }
    if (!replaces) return fail(Code::unsupported, "neither byte-level nor written with \"▁\" for spaces");
    return {};
  }

  // A template that begins with a special token is how tokenizer.json asks for BOS.
  void read_bos() {
    vocab_.add_bos = false;
    for (const json* step : steps_of(member(root_, "post_processor"), "processors")) {
      const json* single = member(*step, "single");
      if (text_member(*step, "type") != "TemplateProcessing" || single == nullptr || !single->is_array() ||
          single->empty()) {
        continue;
      }
      const json* first = member(single->front(), "SpecialToken");
      if (first == nullptr) continue;
      const std::string text = text_member(*first, "id");
      const auto found = std::find(vocab_.pieces.begin(), vocab_.pieces.end(), text);
      if (found == vocab_.pieces.end()) continue;
      vocab_.bos = static_cast<uint32_t>(found - vocab_.pieces.begin());
      vocab_.add_bos = true;
    }
  }

  const std::string& path_;
  const json& root_;
  std::vector<const json*> normalizers_;
  std::vector<const json*> pre_tokenizers_;
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
