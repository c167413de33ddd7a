// A tokenizer file of any kind: tokenizer.json, a sentencepiece model or llama2.c's tokenizer.bin. The input
// is a text to encode, NUL, tokenizer_config.json, NUL, generation_config.json, NUL, the tokenizer.
#include "core/formats/tokenizer/tokenizer_files.h"

#include "tests/fuzz/input_folder.h"
#include "tests/fuzz/promises.h"
#include "tests/fuzz/target.h"

namespace tierd {

void fuzz(std::string_view input) {
  static const InputFolder folder;
  const std::string_view text = take_text(input);
  folder.write_unless_empty("tokenizer_config.json", take_text(input));
  folder.write_unless_empty("generation_config.json", take_text(input));
  const std::string path = folder.write("tokenizer", input);
  const auto vocab = read_tokenizer_file(path, 0);
  if (!vocab.ok()) return expect_one_line(vocab.error(), folder.path());
  expect_tokenizer(*vocab, path, text);
}

}  // namespace tierd
