// Reads llama2.c's tokenizer.bin: i32 longest piece, then for each token f32 score, i32 length, bytes. All
// little-endian. It is a SentencePiece model with plain spaces in place of "▁"; the first three tokens are
// the unknown token, BOS and EOS, by position.
#include <fmt/format.h>

#include <cmath>
#include <cstring>

#include "core/base/file.h"
#include "core/formats/tokenizer/tokenizer_files.h"
#include "core/model/text/sentencepiece_bpe.h"

namespace tierd {
namespace {

constexpr uint32_t kUnknown = 0;
constexpr uint32_t kBos = 1;
constexpr uint32_t kEos = 2;
constexpr const char* kSpecialPieces[] = {"<unk>", "<s>", "</s>"};
constexpr uint32_t kLongestPiece = 64u << 10;

std::string marked_spaces(std::string_view piece) {
  std::string out;
  for (const char c : piece) {
    if (c == ' ') {
      out += kSpaceMark;
    } else {
      out.push_back(c);
    }
  }
  return out;
}

class Reader {
 public:
  Reader(const std::string& path, const std::string& file) : path_(path), file_(file) {}

  bool at_end() const { return at_ == file_.size(); }
  size_t at() const { return at_; }
  Error corrupt(size_t offset, const std::string& what) const {
    return Error{Code::corrupt, path_, fmt::format("offset {}: {}", offset, what)};
  }

  Status read_head() {
    if (!take(longest_)) return corrupt(0, "the file ends inside its header");
    if (longest_ <= 0 || static_cast<uint32_t>(longest_) > kLongestPiece)
      return corrupt(0,
                     fmt::format("the longest piece is {} bytes; expected 1 to {}", longest_, kLongestPiece));
    return {};
  }

  // Appends the next token, number `token`, to the vocabulary.
  Status read_token(uint32_t token, Vocab& vocab) {
    float score = 0;
    int32_t bytes = 0;
    const size_t start = at_;
    if (!take(score) || !take(bytes))
      return corrupt(start, fmt::format("the file ends inside token {}", token));
    if (bytes < 0 || bytes > longest_) {
      return corrupt(start + sizeof(score),
                     fmt::format("token {} has {} bytes; expected 0 to {}", token, bytes, longest_));
    }
    if (static_cast<size_t>(bytes) > file_.size() - at_) {
      return corrupt(at_, fmt::format("the file ends inside token {}", token));
    }
    if (!std::isfinite(score))
      return corrupt(start, fmt::format("the score of token {} is not finite", token));
    const std::string_view piece = std::string_view(file_).substr(at_, static_cast<size_t>(bytes));
    at_ += static_cast<size_t>(bytes);
    vocab.scores.push_back(score);
    if (token <= kEos) {
      vocab.pieces.emplace_back(kSpecialPieces[token]);
      vocab.types.push_back(token == kUnknown ? TokenType::unknown : TokenType::control);
    } else {
      vocab.pieces.push_back(marked_spaces(piece));
      vocab.types.push_back(byte_of_piece(piece) >= 0 ? TokenType::byte : TokenType::normal);
    }
    return {};
  }

 private:
  template <class T>
  bool take(T& value) {
    if (file_.size() - at_ < sizeof(value)) return false;
    std::memcpy(&value, file_.data() + at_, sizeof(value));
    at_ += sizeof(value);
    return true;
  }

  const std::string& path_;
  const std::string& file_;
  size_t at_ = 0;
  int32_t longest_ = 0;  // bytes of a piece
};

}  // namespace

Result<Vocab> read_llama2c_tokenizer(const std::string& path, uint32_t vocab_size) {
  TIERD_ASSIGN(const std::string file, read_whole_file(path, kMaxTokenizerFileBytes));
  Reader reader(path, file);
  TIERD_TRY(reader.read_head());
  Vocab vocab;
  vocab.kind = VocabKind::sentencepiece_bpe;
  while (!reader.at_end()) {
    const auto token = static_cast<uint32_t>(vocab.pieces.size());
    if (vocab_size > 0 && token == vocab_size) {
      return reader.corrupt(reader.at(),
                            fmt::format("the file has more tokens than the {} of the model", vocab_size));
    }
    TIERD_TRY(reader.read_token(token, vocab));
  }
  const auto count = static_cast<uint32_t>(vocab.pieces.size());
  if (count <= kEos || count < vocab_size) {
    return reader.corrupt(reader.at(),
                          fmt::format("the file ends after {} tokens; expected {}", count,
                                      vocab_size > 0 ? fmt::format("{}", vocab_size) : "at least 3"));
  }
  vocab.unknown = kUnknown;
  vocab.bos = kBos;
  vocab.eos = kEos;
  vocab.end_tokens = {kBos, kEos};  // llama2.c's models are trained on texts separated by BOS
  return vocab;
}

}  // namespace tierd
