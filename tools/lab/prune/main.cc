// tier-prune: makes a share of a model's weights zero, or smooths its outliers, and writes the model.
#include <fmt/format.h>

#include <string>

#include "core/base/log.h"
#include "core/base/standard_streams.h"
#include "core/formats/gguf_writer.h"
#include "core/store/writer.h"
#include "tools/command_line/command_line.h"
#include "tools/lab/prune/prune_arguments.h"
#include "tools/lab/prune/prune_model.h"
#include "tools/store_arguments/conversion.h"

namespace tierd {
namespace {

constexpr const char* kAbout =
    "Sets a share of the weights of a model's layers to zero, or smooths outliers of activations, and writes "
    "the model as\na store or as a GGUF file.\n";
constexpr const char* kExamples = R"(
SOURCE is a GGUF file (the first of its shards), a Hugging Face folder or a
llama2.c checkpoint. Mixtures of experts are not pruned.

Examples:
  tier prune llama.gguf pruned.gguf --method sparsegpt --share 0.5 --calibration text.txt
  tier prune llama.gguf pruned --method wanda --calibration text.txt --smooth 0.5 \
    --encoding q8_0 --compression bitmap

If OUT ends in .gguf, a GGUF file is written, else a store. Matrices of a pruned or
smoothed model, zeros included, keep f32, f16 and bf16; matrices in block encodings
become f16, unless a store has another --encoding.

Exit status: 0; 2 if the output could not be written or the model is damaged, with one
line on standard error that says why.)";

// All checks come before the work, which may take hours.
Status run(const Conversion& to, const PruneArguments& prune) {
  TIERD_ASSIGN(const WriteOptions how, to.options());
  TIERD_ASSIGN(const auto source, to.open());
  TIERD_ASSIGN(PruneOptions options, prune.options());
  options.quiet = to.quiet;
  TIERD_TRY(to.check_new("a pruned model"));
  TIERD_TRY(check_prunable(*source, options));
  if (to.makes_gguf()) {
    TIERD_TRY(check_gguf(*source));
  } else {
    TIERD_ASSIGN([[maybe_unused]] const Manifest plan, plan_store(*source, how));
  }
  TIERD_ASSIGN(const auto windows, prune.windows(*source, options));
  TIERD_ASSIGN(const auto pruned, prune_model(*source, windows, options, to.out));
  if (!to.quiet && options.method) {
    TIERD_TRY(write_output(fmt::format("{:.2f} % of the {} weights of the layers' matrices are zero\n",
                                       100 * pruned->share_of_zeros(), pruned->weights())));
  }
  TIERD_TRY(to.write(*pruned, how));
  return to.makes_gguf() ? Status() : to.finish(to.out);
}

int main_of(int argc, char** argv) {
  Conversion to;
  PruneArguments prune;
  CommandLine line("tier-prune", kAbout);
  line.footer([] { return kExamples; });
  line.option("source,-m,--model", to.source, "The model").required().named("SOURCE");
  line.option("out,-o,--output", to.out,
              "The store to write, a folder; or a GGUF file, if the name ends in .gguf")
      .required()
      .named("OUT");
  prune.add_to(line);
  line.group("Options");
  to.add_to(line);
  if (const auto status = line.parse(argc, argv)) return *status;
  Status done = to.complete();
  if (done.ok()) done = run(to, prune);
  if (done.ok()) return 0;
  say("tier-prune: " + done.error().line());
  return 2;
}

}  // namespace
}  // namespace tierd

int main(int argc, char** argv) {
  tierd::prepare_standard_streams();
  return tierd::main_of(argc, argv);
}
