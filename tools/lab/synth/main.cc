// tier-synth: makes a model of any public shape with random weights, as a store or as a GGUF file; or with
// weights in which activation statistics are planted.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>
#include <string>

#include "core/base/log.h"
#include "core/base/standard_streams.h"
#include "core/base/units.h"
#include "core/formats/gguf_writer.h"
#include "core/model/shape_file.h"
#include "core/store/channel_order.h"
#include "core/store/writer.h"
#include "tools/command_line/command_line.h"
#include "tools/command_line/exit_code.h"
#include "tools/lab/planted/channel_profile.h"
#include "tools/lab/planted/channel_rates.h"
#include "tools/lab/planted/channel_source.h"
#include "tools/lab/planted/planted_source.h"
#include "tools/lab/planted/predictor_tables.h"
#include "tools/lab/planted/prompt.h"
#include "tools/lab/synth/synthetic_source.h"
#include "tools/lab/synth/zeroed_source.h"
#include "tools/store_arguments/store_arguments.h"

namespace tierd {
namespace {

constexpr const char* kAbout =
    "Makes a model of a given shape with random weights and a tokenizer, to measure with.\n";
constexpr const char* kExamples = R"(
SHAPE is a .toml file like those of configs/models/, or one of
  {}

PROFILE is a .toml file like those of configs/models/planted/, or one of
  {}
With a profile, the model's forward pass has the activation statistics of the
profile: flash and m2cache plant neurons, for OPT-like shapes, in f16 or f32;
activeflow plants channels, for Llama-like shapes. Written beside the model:
  OUT.predictor.safetensors      with planted neurons: their predictor
  OUT.rates.safetensors          with planted channels and --order planted: how
                                 often each channel is used, for its order
  OUT.prompt.txt, OUT.prompt-2.txt, ...
                                 texts for the model to continue (with --temp 0)

Examples:
  tier-synth --shape llama-2-7b /flash/synth-7b         a store, q4_0
  tier-synth --shape opt-1.3b --encoding f16 /flash/opt
  tier-synth --shape llama-2-7b --format gguf 7b.gguf   for llama.cpp, too
  tier-synth --shape llama-2-70b --format gguf --hollow 70b.gguf
  tier-synth --shape llama-2-7b --encoding f16 --zeros 50 \
    --compression bitmap /flash/pruned                  without its zeros
  tier-synth --shape opt-6.7b --sparsity-profile flash --layout neuron \
    --encoding f16 /flash/planted
  tier-synth --shape llama-2-7b --sparsity-profile activeflow \
    --layout channel-group /flash/channels

Exit status: 0; 2 if the model could not be written, with one line on standard
error that says why.)";

struct Arguments {
  std::string shape;
  std::string encoding = "q4_0";
  std::string format = "store";
  StoreArguments store;
  std::string sparsity_profile;
  uint32_t documents = 4;
  uint32_t prompt_tokens = 64;
  std::string out;
  uint64_t seed = 1;
  uint32_t zeros = 0;
  bool hollow = false;
  bool quiet = false;
};

// The value of --order for the planted rates, which need no text.
constexpr std::string_view kPlantedOrder = "planted";

std::string known_encodings() {
  std::vector<std::string_view> names;
  for (const Encoding e : kAllEncodings) names.push_back(name(e));
  return fmt::format("{}", fmt::join(names, ", "));
}

// `order`: a file of rates that orders the channels, or empty.
Status write_model(const Arguments& arguments, std::shared_ptr<const TensorSource> source,
                   const std::string& order, const WriteOptions& options) {
  if (arguments.format == "gguf") return write_gguf(*source, arguments.out, arguments.quiet);
  if (!order.empty()) {
    TIERD_ASSIGN(source, in_order_of_use(std::move(source), {order, arguments.store.layer_group(),
                                                             arguments.store.experts_in_channels()}));
  }
  return write_store(*source, arguments.out, options);
}

// The planted model. `neurons` is the source if neurons are planted, for its predictor; `channels` if
// channels are, for their rates; else NULL.
struct Planted {
  std::shared_ptr<const TensorSource> source;
  const PlantedSource* neurons = nullptr;
  const ChannelSource* channels = nullptr;
};

Result<Planted> plant(const Arguments& arguments, ModelConfig config, Encoding encoding) {
  TIERD_ASSIGN(const auto channels, read_channel_profile(arguments.sparsity_profile));
  if (channels) {
    TIERD_ASSIGN(auto source, ChannelSource::make(std::move(config), *channels, encoding, arguments.seed));
    const ChannelSource* const planted = source.get();
    return Planted{.source = std::move(source), .channels = planted};
  }
  if (arguments.format == "gguf") {
    return Error{Code::unsupported, "--format",
                 "OPT-like shapes, in which neurons are planted, cannot be written as GGUF"};
  }
  TIERD_ASSIGN(PlantedProfile profile, read_planted_profile(arguments.sparsity_profile));
  TIERD_ASSIGN(auto source,
               PlantedSource::make(std::move(config), std::move(profile), encoding, arguments.seed));
  const PlantedSource* const neurons = source.get();
  return Planted{.source = std::move(source), .neurons = neurons};
}

// Returns the file of rates that orders the channels; planted rates are written to one beside the model.
Result<std::string> order_of(const Arguments& arguments, const Planted& planted, const std::string& out) {
  if (arguments.store.order() != kPlantedOrder) return arguments.store.order();
  if (planted.channels == nullptr)
    return Error{Code::invalid_argument, "--order", "'planted' requires a profile that plants channels"};
  std::string rates = out + ".rates.safetensors";
  TIERD_TRY(write_channel_rates(*planted.channels, rates));
  return rates;
}

// The model is written first: a store refuses to replace another, whose tables and texts must stay too.
Status make_planted(const Arguments& arguments, ModelConfig config, Encoding encoding,
                    const WriteOptions& options) {
  TIERD_ASSIGN(const Planted planted, plant(arguments, std::move(config), encoding));
  TIERD_ASSIGN(const auto prompts, planted_prompts(planted.source->config(), arguments.seed,
                                                   arguments.documents, arguments.prompt_tokens));
  std::string out = arguments.out;
  while (out.size() > 1 && out.back() == '/') out.pop_back();
  TIERD_ASSIGN(const std::string order, order_of(arguments, planted, out));
  TIERD_TRY(write_model(arguments, planted.source, order, options));
  if (planted.neurons != nullptr)
    TIERD_TRY(write_predictor_tables(*planted.neurons, out + ".predictor.safetensors", arguments.quiet));
  return write_planted_prompts(*planted.source, out + ".prompt", prompts);
}

Status make_model(const Arguments& arguments) {
  const auto encoding = by_name<Encoding>(arguments.encoding);
  if (!encoding) {
    return Error{Code::invalid_argument, "--encoding",
                 fmt::format("'{}' is unknown; known are {}", arguments.encoding, known_encodings())};
  }
  TIERD_ASSIGN(WriteOptions options, arguments.store.options());
  options.quiet = arguments.quiet;
  TIERD_ASSIGN(ModelConfig config, read_shape(arguments.shape));
  if (!arguments.sparsity_profile.empty())
    return make_planted(arguments, std::move(config), *encoding, options);
  TIERD_ASSIGN(std::unique_ptr<TensorSource> source,
               SyntheticSource::make(std::move(config), *encoding, arguments.seed));
  if (arguments.zeros != 0) source = std::make_unique<ZeroedSource>(std::move(source), arguments.zeros);
  if (arguments.hollow) return write_hollow_gguf(*source, arguments.out);
  TIERD_ASSIGN(const std::string order, order_of(arguments, {}, arguments.out));
  return write_model(arguments, std::move(source), order, options);
}

int fail(const std::string& line) {
  say("tier-synth: " + line);
  return kBadInput;
}

int run(int argc, char** argv) {
  Arguments arguments;
  CommandLine line("tier-synth", kAbout);
  line.footer([] {
    return fmt::format(kExamples, fmt::join(known_shapes(), "\n  "),
                       fmt::join(known_planted_profiles(), "\n  "));
  });
  line.option("out,-o,--output", arguments.out, "The store (a folder) or the GGUF file to write")
      .required()
      .named("OUT");
  line.option("--shape", arguments.shape, "The model's shape, see below").required().named("SHAPE");
  line.option("--encoding", arguments.encoding, known_encodings() + ", for every matrix")
      .named("ENCODING")
      .shows_default();
  line.option("--format", arguments.format, "store or gguf").one_of({"store", "gguf"}).shows_default();
  line.option("-s,--seed", arguments.seed, "The same seed gives the same weights").named("N").shows_default();
  const Argument zeros = line.option("--zeros", arguments.zeros,
                                     "Per cent of the weights in the layers' matrices that are zero, as in a "
                                     "pruned model; for f32, f16, bf16 and q8_0")
                             .named("PERCENT")
                             .between(0, 100)
                             .shows_default();
  line.flag("--hollow", arguments.hollow,
            "Holes instead of weights (GGUF only): tierd --check can plan the model, but nothing can run it");
  arguments.store.add_to(line);
  const Argument profile =
      line.option("--sparsity-profile", arguments.sparsity_profile, "Plants activation statistics, see below")
          .named("PROFILE");
  line.option("--prompt-tokens", arguments.prompt_tokens, "Number of tokens in each text to continue")
      .named("N")
      .shows_default()
      .needs(profile);
  line.option("--documents", arguments.documents, "Number of texts, from different starts")
      .named("N")
      .shows_default()
      .needs(profile);
  line.flag("-q,--quiet", arguments.quiet, "No progress");
  if (const auto status = line.parse(argc, argv)) return *status;
  if (arguments.format == "gguf" && arguments.store.given()) {
    return fail(
        "--neuron-bytes, --layout, --layer-group, --order, --compression, --editions, --codec and "
        "--bundling: not supported for a GGUF file, which has no neurons");
  }
  if (zeros.given() && (profile.given() || arguments.hollow))
    return fail("--zeros: not supported with planted weights or holes");
  if (arguments.hollow && arguments.format != "gguf")
    return fail("--hollow: not supported for a store; set --format gguf");
  const Status made = make_model(arguments);
  if (made.ok()) return 0;
  return fail(made.error().line());
}

}  // namespace
}  // namespace tierd

int main(int argc, char** argv) {
  tierd::prepare_standard_streams();
  return tierd::run(argc, argv);
}
