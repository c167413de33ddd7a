#include "core/formats/vocab_files.h"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "core/base/file.h"
#include "core/base/json_fields.h"
#include "core/formats/hf_config.h"
#include "core/formats/tokenizer/tokenizer_files.h"

namespace tierd {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// Returns the ids of a key that the tokenizer has. Files also have -1, and ids of padding and removed tokens.
Result<std::vector<uint32_t>> known_ids(const JsonFields& f, const char* key, const Vocab& vocab) {
  TIERD_ASSIGN(const std::vector<int64_t> ids, f.integers(key));
  std::vector<uint32_t> known;
  for (const int64_t id : ids) {
    if (id >= 0 && static_cast<uint64_t>(id) < vocab.pieces.size()) {
      known.push_back(static_cast<uint32_t>(id));
    } else {
      f.warn(key, fmt::format("found {}, the tokenizer has {} tokens; ignored", id, vocab.pieces.size()));
    }
  }
  return known;
}

// Takes the tokens that begin and end a text from config.json or generation_config.json.
Status apply_special_ids(const JsonFields& f, Vocab& vocab) {
  TIERD_ASSIGN(const auto begins, known_ids(f, "bos_token_id", vocab));
  if (!begins.empty()) vocab.bos = begins.front();
  TIERD_ASSIGN(const auto ends, known_ids(f, "eos_token_id", vocab));
  if (!ends.empty()) vocab.eos = ends.front();
  for (const uint32_t end : ends) {
    if (std::find(vocab.end_tokens.begin(), vocab.end_tokens.end(), end) == vocab.end_tokens.end()) {
      vocab.end_tokens.push_back(end);
    }
  }
  return {};
}

// Calls `apply` with the fields of a file of the folder, if the file exists.
template <class Apply>
Status with_json(const fs::path& path, FoundVocab& found, const Apply& apply) {
  if (!file_exists(path)) return {};
  TIERD_ASSIGN(const json root, read_json_file(path, kMaxConfigBytes));
  TIERD_ASSIGN(const JsonFields fields, JsonFields::of(root, path));
  found.files.push_back(path);
  return apply(fields);
}

Status read_folder_tokenizer(const fs::path& folder, FoundVocab& found) {
  const std::string fast = folder / "tokenizer.json";
  const std::string sentencepiece = folder / "tokenizer.model";
  const std::string vocab = folder / "vocab.json";
  const std::string merges = folder / "merges.txt";
  if (file_exists(fast)) {
    TIERD_ASSIGN(found.vocab, read_tokenizer_json(fast));
    found.files = {fast};
  } else if (file_exists(sentencepiece)) {
    TIERD_ASSIGN(found.vocab, read_tokenizer_model(sentencepiece));
    found.files = {sentencepiece};
  } else if (file_exists(vocab) && file_exists(merges)) {
    TIERD_ASSIGN(found.vocab, read_gpt2_files(vocab, merges));
    found.files = {vocab, merges};
  }
  return {};
}

}  // namespace

Result<FoundVocab> read_chosen_vocab(uint32_t vocab_size, const ModelFileOptions& options) {
  FoundVocab found;
  if (options.tokenizer.empty()) return found;
  TIERD_ASSIGN(found.vocab, read_tokenizer_file(options.tokenizer, vocab_size));
  found.files = {options.tokenizer};
  return found;
}

Result<FoundVocab> find_hf_vocab(const std::string& folder, uint32_t vocab_size,
                                 const ModelFileOptions& options) {
  const fs::path root(folder);
  TIERD_ASSIGN(FoundVocab found, read_chosen_vocab(vocab_size, options));
  if (!found.vocab) TIERD_TRY(read_folder_tokenizer(root, found));
  if (!found.vocab) return found;

  Vocab& vocab = *found.vocab;
  // The token with which tokenizer.json begins texts wins over the configuration's.
  const bool begins = vocab.add_bos && options.tokenizer.empty() && file_exists(root / "tokenizer.json");
  const uint32_t begin = begins ? vocab.bos : kNoToken;
  const auto special_ids = [&](const JsonFields& f) { return apply_special_ids(f, vocab); };
  TIERD_TRY(with_json(root / "config.json", found, special_ids));
  TIERD_TRY(with_json(root / "generation_config.json", found, special_ids));
  TIERD_TRY(with_json(root / "tokenizer_config.json", found, [&](const JsonFields& f) -> Status {
    TIERD_ASSIGN(vocab.add_bos, f.flag("add_bos_token", vocab.add_bos));
    return {};
  }));
  if (begin != kNoToken) vocab.bos = begin;
  return found;
}

Result<FoundVocab> find_llama2c_vocab(const std::string& checkpoint, uint32_t vocab_size,
                                      const ModelFileOptions& options) {
  TIERD_ASSIGN(FoundVocab found, read_chosen_vocab(vocab_size, options));
  const fs::path folder = fs::path(checkpoint).parent_path();
  for (const std::string& name : {fmt::format("tok{}.bin", vocab_size), std::string("tokenizer.bin")}) {
    const std::string path = folder / name;
    if (found.vocab || !file_exists(path)) continue;
    TIERD_ASSIGN(found.vocab, read_llama2c_tokenizer(path, vocab_size));
    found.files = {path};
  }
  return found;
}

}  // namespace tierd
