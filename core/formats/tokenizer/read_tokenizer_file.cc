// Chooses the reader of a tokenizer file by the beginning of its content.

#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/base/file.h"
#include "core/base/json_fields.h"
#include "core/formats/tokenizer/json_vocab.h"
#include "core/formats/tokenizer/tokenizer_files.h"

namespace tierd {
namespace {

// "vocab.json" and "merges.txt", or "<name>-vocab.json" and "<name>-merges.txt".
constexpr std::string_view kVocabName = "vocab.json";
constexpr std::string_view kMergesName = "merges.txt";

std::string merges_beside(const std::string& vocab_json) {
  const std::filesystem::path path(vocab_json);
  const std::string name = path.filename().string();
  if (name.ends_with(kVocabName)) {
    const std::string same_name = name.substr(0, name.size() - kVocabName.size()) + std::string(kMergesName);
    if (const std::string file = (path.parent_path() / same_name).string(); is_regular_file(file))
      return file;
  }
  return (path.parent_path() / kMergesName).string();
}

}  // namespace

Result<Vocab> read_tokenizer_file(const std::string& path, uint32_t vocab_size) {
  TIERD_ASSIGN(const std::string file, read_whole_file(path, kMaxTokenizerFileBytes));
  if (file.empty()) return Error{Code::corrupt, path, "is empty"};
  const size_t first = file.find_first_not_of(" \t\r\n");
  if (first != std::string::npos && file[first] == '{') {
    TIERD_ASSIGN(const nlohmann::json root, read_json_file(path, kMaxTokenizerFileBytes));
    const auto model = root.find("model");
    if (model != root.end() && model->is_object()) return vocab_of_tokenizer_json(path, root);
    return read_gpt2_files(path, merges_beside(path));
  }
  // Lines of tiktoken: base64, a space, a rank. All such files begin with the byte 0x21 ("IQ==").
  if (file.starts_with("IQ== ")) {
    return Error{Code::unsupported, path,
                 "a tiktoken file has no merges; give the tokenizer.json of the model"};
  }
  // A sentencepiece model begins with a piece (field 1, a message: 0x0a and its length, which is never 0);
  // tokenizer.bin begins with a small 32-bit length.
  if (file.size() > 1 && file[0] == '\n' && file[1] != '\0') return read_tokenizer_model(path);
  if (file.size() > 3 && file[2] == '\0' && file[3] == '\0') return read_llama2c_tokenizer(path, vocab_size);
  return Error{
      Code::unsupported, path,
      "is no tokenizer file; expected tokenizer.model, tokenizer.json, vocab.json with merges.txt, or "
      "llama2.c's tokenizer.bin"};
}

}  // namespace tierd
