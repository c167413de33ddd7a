// tier-tokenize: converts text to token ids and back, with the tokenizer of a model.
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/log.h"
#include "core/base/standard_streams.h"
#include "core/base/utf8.h"
#include "core/model/text/tokenizer.h"
#include "tools/command_line/command_line.h"
#include "tools/command_line/exit_code.h"
#include "tools/tier/tokenize/load_vocab.h"

namespace tierd {
namespace {

constexpr const char* kAbout = "Converts text into the token ids of a model, or ids into text.";
constexpr const char* kExamples = R"(
MODEL is a model (a GGUF file, a Hugging Face folder, a llama2.c checkpoint, a
store) or only its tokenizer (tokenizer.model, tokenizer.json, vocab.json with
merges.txt beside it, llama2.c's tokenizer.bin). The text is read from -p, -f
or standard input, byte for byte.

Examples:
  tier-tokenize -m model.gguf -p 'Hello world'          one line a token
  tier-tokenize -m model.gguf --ids -f prompt.txt       [1, 15043, 3186]
  tier-tokenize -m tokenizer.json --ids --no-bos < prompt.txt
  tier-tokenize -m model.gguf --special -p '<s>Hello'   "<s>" as one token
  tier-tokenize -m model.gguf --decode '[15043, 3186]'  Hello world
  tier-tokenize -m model.gguf --ids -f a.txt | tier-tokenize -m model.gguf --decode -

Exit status: 0; 1 if the output cannot be written; 2 for unusable arguments or
files, with one line on standard error that says why.)";

struct Arguments {
  std::string model;
  std::string prompt;
  std::string file;
  std::string decode;
  bool has_prompt = false;
  bool has_file = false;
  bool has_decode = false;
  bool ids = false;
  bool no_bos = false;
  bool special = false;
};

Result<std::string> read_stream(std::FILE* stream, const std::string& name) {
  std::string text;
  char buffer[1 << 16];
  for (size_t bytes = 0; (bytes = std::fread(buffer, 1, sizeof(buffer), stream)) > 0;)
    text.append(buffer, bytes);
  if (std::ferror(stream) != 0) return Error{Code::io_error, name, std::strerror(errno)};
  return text;
}

Result<std::string> read_text(const Arguments& arguments) {
  if (arguments.has_prompt) return arguments.prompt;
  if (!arguments.has_file) return read_stream(stdin, "standard input");
  std::FILE* stream = std::fopen(arguments.file.c_str(), "rb");
  if (stream == nullptr) {
    return Error{errno == ENOENT ? Code::not_found : Code::io_error, arguments.file, std::strerror(errno)};
  }
  Result<std::string> text = read_stream(stream, arguments.file);
  std::fclose(stream);
  return text;
}

// Parses numbers separated by brackets, commas and white space in any mixture.
Result<std::vector<uint32_t>> parse_ids(std::string_view text, size_t token_count) {
  constexpr std::string_view kBetween = "[], \t\r\n";
  std::vector<uint32_t> ids;
  for (size_t at = text.find_first_not_of(kBetween); at != std::string_view::npos;
       at = text.find_first_not_of(kBetween, at)) {
    const size_t end = std::min(text.find_first_of(kBetween, at), text.size());
    const std::string_view word = text.substr(at, end - at);
    uint32_t id = 0;
    const auto [rest, error] = std::from_chars(word.data(), word.data() + word.size(), id);
    if (error != std::errc() || rest != word.data() + word.size() || id >= token_count) {
      return Error{
          Code::invalid_argument, "--decode",
          fmt::format("\"{}\" is not a token id; expected whole numbers below {}", shown(word), token_count)};
    }
    ids.push_back(id);
    at = end;
  }
  return ids;
}

Result<std::string> decoded(const Arguments& arguments, const Tokenizer& tokenizer) {
  std::string list = arguments.decode;
  if (list == "-") {
    TIERD_ASSIGN(list, read_stream(stdin, "standard input"));
  }
  TIERD_ASSIGN(const std::vector<uint32_t> ids, parse_ids(list, tokenizer.vocab().pieces.size()));
  return tokenizer.decode(ids, arguments.special);
}

Result<std::string> encoded(const Arguments& arguments, const Tokenizer& tokenizer) {
  TIERD_ASSIGN(const std::string text, read_text(arguments));
  const std::vector<uint32_t> ids = tokenizer.encode(text, !arguments.no_bos, arguments.special);
  if (arguments.ids) return fmt::format("[{}]\n", fmt::join(ids, ", "));
  std::string lines;
  for (const uint32_t id : ids)
    lines += fmt::format("{:6} -> '{}'\n", id, shown(tokenizer.piece(id, true), SIZE_MAX));
  return lines;
}

Result<std::string> run(const Arguments& arguments) {
  TIERD_ASSIGN(Vocab vocab, load_vocab(arguments.model));
  TIERD_ASSIGN(const std::unique_ptr<Tokenizer> tokenizer, make_tokenizer(std::move(vocab), arguments.model));
  return arguments.has_decode ? decoded(arguments, *tokenizer) : encoded(arguments, *tokenizer);
}

int fail(int status, const std::string& line) {
  say("tier-tokenize: " + line);
  return status;
}

int main_with(int argc, char** argv) {
  Arguments arguments;
  CommandLine line("tier-tokenize", kAbout);
  line.footer([] { return kExamples; });
  line.option("-m,--model", arguments.model, "The model or tokenizer").required().named("MODEL");
  Argument prompt = line.option("-p,--prompt", arguments.prompt, "The text").named("TEXT");
  Argument file = line.option("-f,--file", arguments.file, "A file with the text").named("FILE");
  Argument ids = line.flag("--ids", arguments.ids, "Print only the ids, as in [1, 2, 3]");
  Argument no_bos =
      line.flag("--no-bos", arguments.no_bos, "Do not begin with the BOS token, even if the model has it");
  line.flag("--special", arguments.special,
            "Convert control tokens in the text into their ids; with --decode, print them");
  Argument decode = line.option("--decode", arguments.decode,
                                "Print the text of these ids; -: read them from standard input")
                        .named("IDS");
  prompt.excludes(file);
  decode.excludes(prompt).excludes(file).excludes(ids).excludes(no_bos);
  if (const auto status = line.parse(argc, argv)) return *status;
  arguments.has_prompt = prompt.given();
  arguments.has_file = file.given();
  arguments.has_decode = decode.given();

  const Result<std::string> output = run(arguments);
  if (!output.ok()) return fail(kBadInput, output.error().line());
  const Status written = write_output(*output);
  return written.ok() ? 0 : fail(kFailed, written.error().line());
}

}  // namespace
}  // namespace tierd

int main(int argc, char** argv) {
  tierd::prepare_standard_streams();
  return tierd::main_with(argc, argv);
}
