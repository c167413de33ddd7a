// Any bytes as text for a known tokenizer, chosen by the first byte. If the tokenizer has all 256 bytes,
// decoding returns the text.
#include <array>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/base/check.h"
#include "core/base/json_fields.h"
#include "core/formats/tokenizer/json_vocab.h"
#include "core/formats/tokenizer/tokenizer_files.h"
#include "core/model/text/sentencepiece_bpe.h"
#include "core/model/text/tokenizer.h"
#include "tests/fuzz/target.h"

namespace tierd {
namespace {

constexpr std::array kFiles = {
    "tests/golden/tokenizer/bytes.model", "tests/golden/tokenizer/no_prefix.model",
    "tests/golden/tokenizer/plain.model", "tests/golden/tokenizer/unknown.model",
    "tests/golden/tokenizer/gpt2.json",   "tests/golden/tokenizer/llama3.json",
    "tests/golden/tokenizer/qwen2.json",  "tests/golden/tokenizer/llama_metaspace.json",
    "configs/models/demo/tokenizer.json",
};
// Splitting rules that only GGUF names; no tokenizer.json uses them.
constexpr std::array kMorePreTokenizers = {"falcon", "deepseek-coder"};

struct Subject {
  std::unique_ptr<Tokenizer> tokenizer;
  bool whole = false;  // no byte is lost
};

// Returns the expected text: a sentencepiece vocabulary cannot tell a written "▁" from a space.
std::string as_it_comes_back(const Tokenizer& tokenizer, std::string_view text) {
  std::string expected(text);
  if (tokenizer.vocab().kind != VocabKind::sentencepiece_bpe) return expected;
  for (size_t at = expected.find(kSpaceMark); at != std::string::npos; at = expected.find(kSpaceMark)) {
    expected.replace(at, kSpaceMark.size(), " ");
  }
  return expected;
}

std::string there_and_back(const Tokenizer& tokenizer, std::string_view text) {
  return tokenizer.decode(tokenizer.encode(text, false, false), true);
}

Subject subject_of(Vocab vocab) {
  auto made = make_tokenizer(std::move(vocab), "known");
  TIERD_CHECK_MSG(made.ok(), made.error().line());
  Subject subject{std::move(made).value(), true};
  for (int byte = 0; byte < 256; ++byte) {
    const std::string text(1, static_cast<char>(byte));
    subject.whole = subject.whole && there_and_back(*subject.tokenizer, text) == text;
  }
  return subject;
}

// Adds the tokenizers of tests/golden/tokenizer/fields.json, which have steps.
void add_steps(std::vector<Subject>& subjects) {
  const std::string path = TIERD_SOURCE_DIR "/tests/golden/tokenizer/fields.json";
  const auto golden = read_json_file(path, kMaxTokenizerFileBytes);
  TIERD_CHECK_MSG(golden.ok(), golden.error().line());
  for (const nlohmann::json& root : golden->at("bases")) {
    auto vocab = vocab_of_tokenizer_json(path, root);
    TIERD_CHECK_MSG(vocab.ok(), vocab.error().line());
    subjects.push_back(subject_of(std::move(vocab).value()));
    subjects.back().whole = false;  // some write other text
  }
}

std::vector<Subject> all_subjects() {
  std::vector<Subject> subjects;
  for (const char* file : kFiles) {
    auto vocab = read_tokenizer_file(std::string(TIERD_SOURCE_DIR "/") + file, 0);
    TIERD_CHECK_MSG(vocab.ok(), vocab.error().line());
    if (vocab->pre_tokenizer == "gpt-2" && vocab->kind == VocabKind::byte_bpe) {
      for (const char* name : kMorePreTokenizers) {
        Vocab other = *vocab;
        other.pre_tokenizer = name;
        subjects.push_back(subject_of(std::move(other)));
      }
    }
    subjects.push_back(subject_of(std::move(vocab).value()));
  }
  add_steps(subjects);
  return subjects;
}

}  // namespace

void fuzz(std::string_view input) {
  static const std::vector<Subject> subjects = all_subjects();
  if (input.empty()) return;
  const Subject& subject = subjects[static_cast<unsigned char>(input[0]) % subjects.size()];
  const Tokenizer& tokenizer = *subject.tokenizer;
  const std::string_view text = input.substr(1);
  for (const uint32_t token : tokenizer.encode(text, true, true)) {
    TIERD_CHECK(token < tokenizer.vocab().pieces.size());
  }
  if (subject.whole) TIERD_CHECK(there_and_back(tokenizer, text) == as_it_comes_back(tokenizer, text));
}

}  // namespace tierd
