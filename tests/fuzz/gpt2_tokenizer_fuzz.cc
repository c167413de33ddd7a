// GPT-2's pair of files. The input is a text to encode, NUL, vocab.json, NUL, merges.txt.
#include "core/formats/tokenizer/tokenizer_files.h"
#include "tests/fuzz/input_folder.h"
#include "tests/fuzz/promises.h"
#include "tests/fuzz/target.h"

namespace tierd {

void fuzz(std::string_view input) {
  static const InputFolder folder;
  const std::string_view text = take_text(input);
  const std::string path = folder.write("vocab.json", take_text(input));
  const auto vocab = read_gpt2_files(path, folder.write("merges.txt", input));
  if (!vocab.ok()) return expect_one_line(vocab.error(), folder.path());
  expect_tokenizer(*vocab, path, text);
}

}  // namespace tierd
