// tier-convert: makes a store or a GGUF file from a model file; shows or verifies a store.
#include <string>
#include <utility>
#include <vector>

#include "core/base/log.h"
#include "core/base/standard_streams.h"
#include "tools/command_line/command_line.h"
#include "tools/command_line/exit_code.h"
#include "tools/command_line/moved.h"
#include "tools/store_arguments/conversion.h"

namespace tierd {
namespace {

constexpr const char* kAbout =
    "Converts a model into a store, the form in which weights are read from flash, or into a GGUF file.\n";
constexpr const char* kExamples = R"(
SOURCE is a GGUF file (the first of its shards), a Hugging Face folder or a
llama2.c checkpoint. tierd converts models by itself; use tier convert for a
store with a folder of your choice.

Examples:
  tier-convert llama-2-7b.Q4_0.gguf /flash/llama-2-7b --verify
  tier-convert stories15M.bin stories --tokenizer tokenizer.bin
  tier-convert --verify /flash/llama-2-7b               an existing store
  tier-convert TinyLlama-1.1B tinyllama.gguf            for llama.cpp as well
  tier-convert pruned.gguf pruned --compression zstd --codec level=19

If OUT ends in .gguf, a GGUF file is written, else a store. In a GGUF file matrices keep
their encoding; llama-quantize converts it to others. tier prune sets weights to zero.

Exit status: 0; 2 if the output could not be written or the store is damaged, with one
line on standard error that says why.)";

// Refuses the arguments of tier-prune; returns 0 if there are none.
int refuse_pruning(const std::vector<std::string>& words) {
  const std::string_view found = find_option(
      words, {"--prune", "--smooth", "--sparsity", "--nm", "--calibration", "--calibration-tokens"});
  if (found.empty()) return 0;
  std::vector<std::string> command = {"tier", "prune"};
  for (std::string word : words) {
    for (const auto& [former, now] : {std::pair("--prune", "--method"), std::pair("--sparsity", "--share")}) {
      const size_t length = std::string_view(former).size();
      if (!find_option({word}, {former}).empty()) word.replace(0, length, now);
    }
    command.push_back(std::move(word));
  }
  return refuse_moved("tier-convert", found, command);
}

Status convert(const Conversion& to) {
  TIERD_ASSIGN(const WriteOptions options, to.options());
  TIERD_ASSIGN(const auto source, to.open());
  if (to.makes_gguf()) TIERD_TRY(to.check_new("a GGUF file"));
  return to.write(*source, options);
}

// With OUT: converts, then verifies on request. Without: SOURCE is a store to verify.
Status run(const Conversion& to) {
  if (!to.out.empty()) TIERD_TRY(convert(to));
  return to.makes_gguf() ? Status() : to.finish(to.out.empty() ? to.source : to.out);
}

int fail(const std::string& line) {
  say("tier-convert: " + line);
  return kBadInput;
}

int main_of(int argc, char** argv) {
  const std::vector<std::string> words = words_of(argc, argv);
  if (const int refused = refuse_pruning(words)) return refused;
  Conversion to;
  CommandLine line("tier-convert", kAbout);
  line.footer([] { return kExamples; });
  line.option("source,-m,--model", to.source, "The model; or, with --verify and no OUT, a store")
      .required()
      .named("SOURCE");
  line.option("out,-o,--output", to.out,
              "The store to write, a folder, which resumes an interrupted conversion; or a GGUF file, if the "
              "name ends in .gguf")
      .named("OUT");
  to.add_to(line);
  if (const auto status = line.parse(words)) return *status;
  const Status complete = to.complete();
  if (to.out.empty() && !to.verify) {
    return fail("OUT is missing; check a store with tier convert --verify STORE");
  }
  if (to.out.empty() && (!to.tokenizer.empty() || to.store.given())) {
    return fail(
        "--tokenizer, --neuron-bytes, --layout, --layer-group, --bundling, --compression, --editions, "
        "--codec, --encoding and --head-encoding need OUT");
  }
  if (!complete.ok()) return fail(complete.error().line());
  const Status done = run(to);
  if (done.ok()) return 0;
  return fail(done.error().line());
}

}  // namespace
}  // namespace tierd

int main(int argc, char** argv) {
  tierd::prepare_standard_streams();
  return tierd::main_of(argc, argv);
}
