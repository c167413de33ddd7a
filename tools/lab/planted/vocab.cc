#include "tools/lab/planted/vocab.h"

#include <fmt/format.h>

#include "core/base/check.h"

namespace tierd {
namespace {

constexpr std::string_view kSpace = "\u2581";
constexpr uint32_t kBytes = 256;
constexpr uint32_t kLetters = 26;

}  // namespace

Status check_planted_vocab(const ModelConfig& config) {
  if (config.vocab_size > kFirstPlantedWord) return {};
  return Error{Code::invalid_argument, config.name,
               fmt::format("a vocabulary of {} is too small for the special and byte tokens, expected more "
                           "than {}",
                           config.vocab_size, kFirstPlantedWord)};
}

Vocab planted_vocab(uint32_t size) {
  TIERD_CHECK(size > kFirstPlantedWord);
  uint32_t letters = 1;
  for (uint64_t words = kLetters; words < size - kFirstPlantedWord; words *= kLetters) ++letters;

  Vocab vocab;
  vocab.pieces = {"<unk>", "<s>", "</s>"};
  vocab.types = {TokenType::unknown, TokenType::control, TokenType::control};
  for (uint32_t byte = 0; byte < kBytes; ++byte) vocab.pieces.push_back(fmt::format("<0x{:02X}>", byte));
  vocab.types.resize(kFirstPlantedWord, TokenType::byte);
  for (uint32_t word = 0; vocab.pieces.size() < size; ++word) {
    std::string text(letters, 'a');
    uint32_t rest = word;
    for (auto letter = text.rbegin(); rest > 0; ++letter, rest /= kLetters)
      *letter = static_cast<char>('a' + rest % kLetters);
    vocab.pieces.push_back(std::string(kSpace) + text);
  }
  // Words that result from merges would need the merged pieces as tokens, too.
  vocab.types.resize(size, TokenType::user_defined);
  vocab.scores.resize(size, 0.0f);
  vocab.unknown = 0;
  vocab.bos = 1;
  vocab.eos = 2;
  vocab.end_tokens = {2};
  vocab.add_bos = false;
  return vocab;
}

}  // namespace tierd
