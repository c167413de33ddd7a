// Reads vocabularies from tokenizer files. Each error names the file and what was expected.
#pragma once

#include <cstdint>
#include <string>

#include "core/base/result.h"
#include "core/model/text/vocab.h"

namespace tierd {

// The largest current tokenizer files have about 35 MB.
inline constexpr uint64_t kMaxTokenizerFileBytes = 256u << 20;
inline constexpr uint64_t kMaxTokenizerConfigBytes = 16u << 20;  // for the small files beside them

Result<Vocab> read_tokenizer_model(const std::string& path);  // sentencepiece
Result<Vocab> read_tokenizer_json(const std::string& path);   // Hugging Face
Result<Vocab> read_gpt2_files(const std::string& vocab_json, const std::string& merges_txt);
Result<Vocab> read_llama2c_tokenizer(const std::string& path, uint32_t vocab_size);  // tokenizer.bin
Result<Vocab> read_tokenizer_file(const std::string& path,
                                  uint32_t vocab_size);  // one of the above, by content

}  // namespace tierd
