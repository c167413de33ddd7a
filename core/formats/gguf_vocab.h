// The tokenizer in a GGUF file's metadata.
#pragma once

#include <optional>

#include "core/base/result.h"
#include "core/formats/gguf_header.h"
#include "core/model/text/vocab.h"

namespace tierd {

// Reads tokenizer.ggml.model "llama" (sentencepiece BPE) or "gpt2" (byte BPE); nothing if the file has no
// tokenizer. `vocab_size`: rows of the embedding; the number of tokens must equal it.
Result<std::optional<Vocab>> read_gguf_vocab(const File& file, const GgufHeader& header, uint32_t vocab_size);

}  // namespace tierd
