// The promise of every reader for any bytes: a value that the next part of the program can use, or one line
// that names the wrong file. A broken promise aborts with what was found.
#pragma once

#include <memory>
#include <string_view>

#include "core/base/result.h"
#include "core/model/tensor_source.h"
#include "core/model/text/vocab.h"

namespace tierd {

// Expects one line that begins with `path`: the file, or its folder.
void expect_one_line(const Error& error, std::string_view path);

// Expects that each tensor of an accepted model can be read, a store planned and the vocabulary used.
void expect_model(const Result<std::unique_ptr<TensorSource>>& opened, std::string_view path);

// Expects a tokenizer that encodes `text` into its own tokens, or one line.
void expect_tokenizer(const Vocab& vocab, std::string_view path, std::string_view text);

}  // namespace tierd
