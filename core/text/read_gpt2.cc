// GPT-2's two files: vocab.json, an object of piece to id, and merges.txt, a line for each merge.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/text/input_file.h"
#include "core/text/json_vocab.h"
#include "core/text/special_tokens.h"
#include "core/text/tokenizer.h"

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

}  // namespace

Result<Vocab> read_gpt2_files(const std::string& vocab_json, const std::string& merges_txt) {
  TIERD_ASSIGN(const nlohmann::json root, read_json_file(vocab_json, kMaxTokenizerFileBytes));
  VocabBuilder builder(vocab_json);
  TIERD_TRY(builder.add_pieces(root, ""));
  TIERD_ASSIGN(Vocab vocab, std::move(builder).build());
  vocab.kind = VocabKind::byte_bpe;
  vocab.add_bos = false;  // unless tokenizer_config.json asks for it, as OPT's does
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
