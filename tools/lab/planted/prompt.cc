#include "tools/lab/planted/prompt.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <span>

#include "core/base/check.h"
#include "core/base/disk.h"
#include "core/model/text/tokenizer.h"
#include "tools/lab/planted/counter_random.h"
#include "tools/lab/planted/vocab.h"

namespace tierd {

Result<std::vector<std::vector<uint32_t>>> planted_prompts(const ModelConfig& config, uint64_t seed,
                                                           uint32_t documents, uint32_t tokens) {
  const uint32_t words = config.vocab_size - kFirstPlantedWord;
  if (documents == 0 || tokens == 0 || words / documents < tokens) {
    return Error{Code::invalid_argument, "--documents",
                 fmt::format("{} documents of {} tokens do not fit into {} words", documents, tokens, words)};
  }
  const uint32_t part = words / documents;
  // Generation continues with the next ids, so each part keeps words for a whole context if it has enough.
  const uint32_t length = std::max(tokens, std::min(config.context_length, part / 2));
  const RandomKey key = random_key(seed, 0, Drawn::prompt, 0);
  std::vector<std::vector<uint32_t>> prompts;
  for (uint32_t i = 0; i < documents; ++i) {
    const uint64_t starts = uint64_t{part} - length + 1;
    const auto start = static_cast<uint32_t>(random_word(key, i) * starts >> 32);
    std::vector<uint32_t>& ids = prompts.emplace_back(tokens);
    std::iota(ids.begin(), ids.end(), kFirstPlantedWord + i * part + start);
  }
  return prompts;
}

// The tokenizer adds the first word's space itself.
std::string planted_text(const Vocab& vocab, const std::vector<uint32_t>& ids) {
  constexpr std::string_view kSpace = "\u2581";
  std::string text;
  for (const uint32_t id : ids) {
    if (!text.empty()) text += ' ';
    text += std::string_view(vocab.pieces[id]).substr(kSpace.size());
  }
  return text;
}

Status write_planted_prompts(const TensorSource& source, const std::string& stem,
                             const std::vector<std::vector<uint32_t>>& prompts) {
  TIERD_ASSIGN(const auto tokenizer, make_tokenizer(*source.vocab(), source.path()));
  Disk disk;
  for (size_t i = 0; i < prompts.size(); ++i) {
    const std::string text = planted_text(*source.vocab(), prompts[i]);
    TIERD_CHECK_MSG(tokenizer->encode(text, true, true) == prompts[i], text);
    const std::string path = i == 0 ? stem + ".txt" : fmt::format("{}-{}.txt", stem, i + 1);
    TIERD_ASSIGN(const OpenFile file, disk.open(path, true));
    TIERD_TRY(disk.write(file, 0, std::as_bytes(std::span(text))));
  }
  return {};
}

}  // namespace tierd
