// Reads GPT-2's two files: vocab.json, an object of piece to id, and merges.txt, a line for each merge.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/base/file.h"
#include "core/base/json_fields.h"
#include "core/base/utf8.h"
#include "core/formats/tokenizer/json_vocab.h"
#include "core/formats/tokenizer/special_tokens.h"
#include "core/formats/tokenizer/tokenizer_files.h"
#include "core/formats/tokenizer/tokenizer_json_parts.h"

namespace tierd {
namespace {

constexpr const char* kEndOfText = "<|endoftext|>";

Result<std::vector<std::string>> read_merges(const std::string& path) {
  TIERD_ASSIGN(const std::string text, read_whole_file(path, kMaxTokenizerFileBytes));
  std::vector<std::string> merges;
  size_t number = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line = std::string_view(text).substr(at, end - at);
    at = end + 1;
    ++number;
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty() || (number == 1 && line.starts_with("#version"))) continue;
    const size_t space = line.find(' ');
    if (space == std::string_view::npos || space == 0 || space + 1 == line.size() ||
        line.find(' ', space + 1) != std::string_view::npos) {
      return Error{Code::corrupt, path,
                   fmt::format("line {}: expected two pieces with a space between, found \"{}\"", number,
                               shown(line))};
    }
    merges.emplace_back(line);
  }
  return merges;
}

// Maps the class of the tokenizer to its rules, which the two files do not have.
struct ClassRule {
  std::string_view name;
  std::string_view pre_tokenizer;
  bool composes = false;  // normalizes to NFC
};
constexpr std::array<ClassRule, 6> kClasses = {{{"GPT2Tokenizer", "gpt-2"},
                                                {"CodeGenTokenizer", "gpt-2"},
                                                {"GPTNeoXTokenizer", "gpt-2", true},
                                                {"Qwen2Tokenizer", "qwen2", true},
                                                {"Qwen3_5Tokenizer", "qwen35", true},
                                                {"CohereTokenizer", "command-r", true}}};
constexpr const ClassRule& kGpt2Class = kClasses[0];
constexpr const ClassRule& kQwen2Class = kClasses[3];

Result<std::string> text_beside(const std::string& path, const char* name, const char* key) {
  const std::string file = (std::filesystem::path(path).parent_path() / name).string();
  if (!is_regular_file(file)) return std::string();
  TIERD_ASSIGN(const nlohmann::json root, read_json_file(file, kMaxTokenizerConfigBytes));
  return json_text(root, key);
}

Result<ClassRule> class_rule(const std::string& path) {
  TIERD_ASSIGN(std::string name, text_beside(path, "tokenizer_config.json", "tokenizer_class"));
  if (name.empty()) {
    TIERD_ASSIGN(const std::string model, text_beside(path, "config.json", "model_type"));
    return model.starts_with("qwen") ? kQwen2Class : kGpt2Class;
  }
  constexpr std::string_view kFast = "Fast";
  if (name.ends_with(kFast)) name.resize(name.size() - kFast.size());
  std::string known;
  for (const ClassRule& one : kClasses) {
    if (one.name == name) return one;
    known += (known.empty() ? "" : ", ") + std::string(one.name);
  }
  return Error{Code::unsupported,
               (std::filesystem::path(path).parent_path() / "tokenizer_config.json").string(),
               fmt::format("tokenizer_class: \"{}\" is not supported with vocab.json and merges.txt, "
                           "supported are {}; add the model's tokenizer.json",
                           shown(name), known)};
}

}  // namespace

Result<Vocab> read_gpt2_files(const std::string& vocab_json, const std::string& merges_txt) {
  TIERD_ASSIGN(const nlohmann::json root, read_json_file(vocab_json, kMaxTokenizerFileBytes));
  VocabBuilder builder(vocab_json);
  TIERD_TRY(builder.add_pieces(root, ""));
  TIERD_ASSIGN(Vocab vocab, std::move(builder).build());
  vocab.kind = VocabKind::byte_bpe;
  TIERD_ASSIGN(const ClassRule rule, class_rule(vocab_json));
  vocab.pre_tokenizer = rule.pre_tokenizer;
  if (rule.composes) vocab.normalizers = {{.kind = TextStepKind::nfc}};
  vocab.add_space_prefix = false;
  vocab.add_bos = false;  // unless tokenizer_config.json sets it, as OPT's does
  TIERD_ASSIGN(vocab.merges, read_merges(merges_txt));
  for (uint32_t token = 0; token < vocab.pieces.size(); ++token) {
    if (vocab.pieces[token] != kEndOfText) continue;
    vocab.bos = vocab.eos = token;
    vocab.types[token] = TokenType::control;
  }
  TIERD_TRY(apply_special_token_files(vocab_json, vocab));
  return vocab;
}

}  // namespace tierd
