// tier-convert: makes a store from a model file, or a pruned model; shows or verifies a store.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>

#include "core/base/file.h"
#include "core/base/log.h"
#include "core/base/standard_streams.h"
#include "core/base/units.h"
#include "core/formats/gguf_writer.h"
#include "core/run/store_codec.h"
#include "core/store/source.h"
#include "core/store/store.h"
#include "core/store/writer.h"
#include "tools/command_line/command_line.h"
#include "tools/command_line/exit_code.h"
#include "tools/lab/prune/prune_arguments.h"
#include "tools/lab/prune/prune_model.h"
#include "tools/store_arguments/store_arguments.h"

namespace tierd {
namespace {

constexpr const char* kAbout =
    "Converts a model into a store, the form in which weights are read from flash, or into a GGUF file.\n";
constexpr const char* kExamples = R"(
SOURCE is a GGUF file (the first of its shards), a Hugging Face folder or a
llama2.c checkpoint. tierd converts by itself; this is for stores with a place
and a name of their own.

Examples:
  tier-convert llama-2-7b.Q4_0.gguf /flash/llama-2-7b --verify
  tier-convert stories15M.bin stories --tokenizer tokenizer.bin
  tier-convert --verify /flash/llama-2-7b               an existing store
  tier-convert TinyLlama-1.1B tinyllama.gguf            for llama.cpp as well
  tier-convert llama.gguf pruned.gguf --prune sparsegpt --sparsity 0.5 --calibration text.txt
  tier-convert llama.gguf pruned --prune wanda --calibration text.txt --smooth 0.5 \
    --encoding q8_0 --compression bitmap
  tier-convert pruned.gguf pruned --compression zstd --codec level=19

Where OUT ends in .gguf, a GGUF file is made, else a store. In a GGUF file matrices keep
their encoding (llama-quantize makes others of it). Those of a pruned or smoothed model,
zeros included, keep f32, f16 and bf16; what is in blocks becomes f16, unless --encoding
of a store says otherwise. Mixtures of experts are not pruned.

Exit status: 0; 2 if what was asked for could not be made or is damaged, with one line
on standard error that says why.)";

struct Arguments {
  std::string source;
  std::string out;
  std::string tokenizer;
  StoreArguments store;
  PruneArguments prune;
  bool verify = false;
  bool quiet = false;
};

// Returns "q4_k+q6_k" for a site whose parts differ, "f16 bitmap" for a compressed one.
std::string encodings_of(const StoredSite& site, std::string_view compression) {
  std::string text(name(site.encodings.front()));
  for (const Encoding encoding : site.encodings) {
    if (text.find(name(encoding)) == std::string::npos) text += fmt::format("+{}", name(encoding));
  }
  if (site.compression != Compression::none) text += fmt::format(" {}", compression);
  return text;
}

// One row of the summary: all sites of an operator group and encoding.
struct GroupTotals {
  uint32_t sites = 0;
  uint64_t neurons = 0;
  uint64_t neuron_bytes = 0;  // the largest
  uint64_t bytes = 0;         // without padding
  uint64_t dense = 0;         // without compression
  uint64_t slots = 0;         // if all neurons are in slots
  bool compressed = false;
  uint64_t stored = 0;
  std::optional<float> worst_error;  // of neurons that were encoded anew
};

std::string size(uint64_t bytes) {
  return format_bytes(static_cast<double>(bytes));
}
double padding_percent(uint64_t stored, uint64_t bytes) {
  return bytes == 0 ? 0 : 100.0 * static_cast<double>(stored - bytes) / static_cast<double>(bytes);
}

using Groups = std::map<std::pair<OpGroup, std::string>, GroupTotals>;

// Describes the bytes that compression saved, and those that slots of the largest neuron waste.
std::string compression_summary(const Manifest& manifest, const Groups& groups) {
  const std::string_view by = manifest.compression_name();
  GroupTotals all;
  for (const auto& [key, totals] : groups) {
    if (!totals.compressed) continue;
    all.sites += totals.sites;
    all.bytes += totals.bytes;
    all.stored += totals.stored;
    all.dense += totals.dense;
    all.slots += totals.slots;
  }
  if (all.sites == 0) {
    return fmt::format(
        "{} makes none of the matrices smaller, so that all are dense: prune the model first (--prune), or "
        "choose larger neurons (--neuron-bytes)\n",
        by);
  }
  const auto share = [](uint64_t part, uint64_t whole) {
    return 100.0 * static_cast<double>(part) / static_cast<double>(whole);
  };
  std::string text = fmt::format("{}: {} sites of {} take {}, {:.2f} % of them", by, all.sites,
                                 size(all.dense), size(all.bytes), share(all.bytes, all.dense));
  if (manifest.compression == Compression::codec)
    return fmt::format("{} ({})\n", text, manifest.codec_settings);
  return fmt::format("{}; slots of the largest neuron take {:.2f} % more\n", text,
                     share(all.slots, all.stored) - 100);
}

std::string summary(const Store& store) {
  const Manifest& manifest = store.manifest();
  const ModelConfig& config = manifest.config;
  Groups groups;
  for (const StoredSite* stored : manifest.stored()) {
    const StoredSite& site = *stored;
    GroupTotals& totals = groups[{site.group, encodings_of(site, manifest.compression_name())}];
    totals.sites += 1;
    totals.compressed = site.compression != Compression::none;
    totals.neurons += site.neurons();
    for (uint32_t i = 0; i < site.neurons(); ++i)
      totals.neuron_bytes = std::max(totals.neuron_bytes, site.neuron_bytes(i));
    totals.bytes += site.tensor_bytes();
    totals.dense += tensor_bytes(site.cut, site.encodings);
    totals.slots += site.neurons() * site.slot_bytes();
    totals.worst_error = std::max(totals.worst_error, site.encoding_error);
    for (uint64_t extent = site.first_extent; extent < site.end_extent(); ++extent) {
      if (site.held_by(static_cast<uint32_t>(extent))) totals.stored += manifest.extents[extent].bytes;
    }
  }
  std::string text =
      fmt::format("{}: {} ({}), {} layers, width {}, {} of weights\n", store.directory(), config.name,
                  config.architecture, config.n_layers, config.d_model, size(manifest.tensor_bytes));
  text += fmt::format("{:<10} {:>6} {:>11} {:>9} {:>10} {:>10} {:>9} {:>13}\n", "operator", "sites",
                      "encoding", "neurons", "a neuron", "bytes", "padding", "error, up to");
  for (const auto& [key, totals] : groups) {
    text += fmt::format("{:<10} {:>6} {:>11} {:>9} {:>10} {:>10} {:>7.2f} % {:>13}\n", name(key.first),
                        totals.sites, key.second, totals.neurons, size(totals.neuron_bytes),
                        size(totals.bytes), padding_percent(totals.stored, totals.bytes),
                        totals.worst_error ? fmt::format("{:.2f} %", 100 * *totals.worst_error) : "none");
  }
  GroupTotals resident;
  for (const ResidentTensor& tensor : manifest.resident) {
    resident.bytes += tensor.rows * encoded_bytes(Encoding::f32, tensor.cols);
    resident.stored += manifest.extents[tensor.extent].bytes;
  }
  text += fmt::format("{:<10} {:>6} {:>11} {:>9} {:>10} {:>10} {:>7.2f} % {:>13}\n", "resident",
                      manifest.resident.size(), "f32", "", "", size(resident.bytes),
                      padding_percent(resident.stored, resident.bytes), "none");
  if (config.tied_embeddings) text += "the head shares the embedding's extents\n";
  const auto lossy = [](const StoredSite* site) { return site->encoding_error.has_value(); };
  if (std::ranges::any_of(manifest.stored(), lossy)) {
    text +=
        "error: of what is encoded anew (other encodings than the source's, columns of blocks), relative to "
        "the source\n";
  }
  if (manifest.compression != Compression::none) text += compression_summary(manifest, groups);
  text += fmt::format(
      "{} on disk in {} extents, padding {:.2f} %; {}\n", size(manifest.data_bytes), manifest.extents.size(),
      padding_percent(manifest.data_bytes, manifest.tensor_bytes),
      manifest.has_vocab ? fmt::format("{} tokens", manifest.vocab.pieces.size()) : "no tokenizer");
  return text;
}

bool makes_gguf(const Arguments& arguments) {
  return arguments.out.ends_with(".gguf");
}

Status check_new(const Arguments& arguments, std::string_view what) {
  if (!file_exists(arguments.out)) return {};
  return Error{Code::invalid_argument, arguments.out,
               fmt::format("is there already; {} is made anew: remove it, or choose another name", what)};
}

// All checks come before the work, which may take hours.
Status convert_pruned(const TensorSource& source, const Arguments& arguments, const WriteOptions& how) {
  TIERD_ASSIGN(PruneOptions options, arguments.prune.options());
  options.quiet = arguments.quiet;
  TIERD_TRY(check_new(arguments, "a pruned model"));
  TIERD_TRY(check_prunable(source, options));
  if (makes_gguf(arguments)) {
    TIERD_TRY(check_gguf(source));
  } else {
    TIERD_ASSIGN([[maybe_unused]] const Manifest plan, plan_store(source, how));
  }
  TIERD_ASSIGN(const auto windows, arguments.prune.windows(source, options));
  TIERD_ASSIGN(const auto pruned, prune_model(source, windows, options, arguments.out));
  if (!arguments.quiet && options.method) {
    TIERD_TRY(write_output(fmt::format("{:.2f} % of the {} weights of the layers' matrices are zero\n",
                                       100 * pruned->share_of_zeros(), pruned->weights())));
  }
  return makes_gguf(arguments) ? write_gguf(*pruned, arguments.out, arguments.quiet)
                               : write_store(*pruned, arguments.out, how);
}

Status convert(const Arguments& arguments) {
  TIERD_ASSIGN(WriteOptions options, arguments.store.options());
  options.quiet = arguments.quiet;
  TIERD_ASSIGN(const auto source,
               open_source(arguments.source, {.tokenizer = arguments.tokenizer,
                                              .order = arguments.store.order(),
                                              .layer_group = arguments.store.layer_group(),
                                              .expert_order = arguments.store.experts_in_channels()}));
  if (arguments.prune.given()) return convert_pruned(*source, arguments, options);
  if (!makes_gguf(arguments)) return write_store(*source, arguments.out, options);
  TIERD_TRY(check_new(arguments, "a GGUF file"));
  return write_gguf(*source, arguments.out, arguments.quiet);
}

// With OUT: converts, then verifies on request. Without: SOURCE is a store to verify.
Status run(const Arguments& arguments) {
  if (!arguments.out.empty()) TIERD_TRY(convert(arguments));
  if (makes_gguf(arguments)) return {};
  TIERD_ASSIGN(const Store store, Store::open(arguments.out.empty() ? arguments.source : arguments.out));
  if (arguments.verify) {
    TIERD_ASSIGN(const auto codec, codec_of(store, arguments.store.plugin_path()));
    TIERD_TRY(store.verify_all(arguments.quiet, codec.get()));
  }
  return arguments.quiet ? Status() : write_output(summary(store));
}

int fail(const std::string& line) {
  say("tier-convert: " + line);
  return kBadInput;
}

int main_of(int argc, char** argv) {
  Arguments arguments;
  CommandLine line("tier-convert", kAbout);
  line.footer([] { return kExamples; });
  line.option("source", arguments.source, "The model; or, with --verify and no OUT, a store")
      .required()
      .named("SOURCE");
  line.option(
          "out", arguments.out,
          "The store (a folder) to make, which an interrupted run goes on with; or a GGUF file, if it ends "
          "in .gguf")
      .named("OUT");
  line.option("--tokenizer", arguments.tokenizer, "A tokenizer to use instead of the model's own")
      .named("FILE");
  arguments.store.add_to(line);
  arguments.store.add_encodings_to(line);
  line.flag("--verify", arguments.verify, "Read the store back and check every extent");
  line.flag("-q,--quiet", arguments.quiet, "No progress and no summary");
  arguments.prune.add_to(line);
  if (const auto status = line.parse(argc, argv)) return *status;
  while (arguments.out.size() > 1 && arguments.out.back() == '/') arguments.out.pop_back();
  if (arguments.out.empty() && !arguments.verify) {
    return fail("OUT is missing; to check a store: tier-convert --verify STORE");
  }
  if (arguments.out.empty() &&
      (!arguments.tokenizer.empty() || arguments.store.given() || arguments.prune.given())) {
    return fail(
        "--tokenizer, --neuron-bytes, --layout, --layer-group, --bundling, --compression, --editions, "
        "--codec, "
        "--encoding, --head-encoding and what prunes need OUT");
  }
  if (makes_gguf(arguments) && (arguments.store.given() || arguments.verify)) {
    return fail(
        "--neuron-bytes, --layout, --layer-group, --order, --bundling, --compression, --editions, --codec, "
        "--encoding, --head-encoding and --verify are of stores; OUT is a GGUF file");
  }
  const Status done = run(arguments);
  if (done.ok()) return 0;
  return fail(done.error().line());
}

}  // namespace
}  // namespace tierd

int main(int argc, char** argv) {
  tierd::prepare_standard_streams();
  return tierd::main_of(argc, argv);
}
