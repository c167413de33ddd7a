// The tokenizer in a GGUF file's metadata.
#pragma once

#include <optional>

#include "core/base/result.h"
#include "core/formats/gguf_header.h"
#include "core/model/text/vocab.h"

namespace tierd {

// tokenizer.ggml.model "llama" (sentencepiece BPE) or "gpt2" (byte BPE); none where the file has no
// tokenizer. `vocab_size`: rows of the embedding, which the number of tokens must be.
Result<std::optional<Vocab>> read_gguf_vocab(const File& file, const GgufHeader& header, uint32_t vocab_size);

}  // namespace tierd
