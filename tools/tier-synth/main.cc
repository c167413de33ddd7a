// tier-synth: a model of any public shape with random weights, as a store or as a GGUF file.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>

#include "core/base/units.h"
#include "core/model/shape_file.h"
#include "core/store/gguf_writer.h"
#include "core/store/synthetic_source.h"
#include "core/store/writer.h"

namespace tierd {
namespace {

struct Arguments {
  std::string shape;
  std::string encoding = "q4_0";
  std::string format = "store";
  std::string neuron_bytes;
  std::string out;
  uint64_t seed = 1;
  bool quiet = false;
};

Status make_model(const Arguments& arguments) {
  const auto encoding = encoding_by_name(arguments.encoding);
  if (!encoding) {
    return Error{Code::invalid_argument, "--encoding",
                 fmt::format("'{}' is unknown; f32, f16, bf16, q8_0 and q4_0 are known", arguments.encoding)};
  }
  WriteOptions options{.neuron_bytes = 0, .quiet = arguments.quiet};
  if (!arguments.neuron_bytes.empty()) {
    TIERD_ASSIGN(options.neuron_bytes, parse_bytes(arguments.neuron_bytes, "--neuron-bytes"));
  }
  TIERD_ASSIGN(ModelConfig config, read_shape(arguments.shape));
  TIERD_ASSIGN(const auto source, SyntheticSource::make(std::move(config), *encoding, arguments.seed));
  if (arguments.format == "gguf") return write_gguf(*source, arguments.out, arguments.quiet);
  return write_store(*source, arguments.out, options);
}

int run(int argc, char** argv) {
  Arguments arguments;
  CLI::App app("Makes a model of a public shape with random weights, to measure with.", "tier-synth");
  app.add_option("out", arguments.out, "The store (a folder) or GGUF file to make")->required();
  app.add_option("--shape", arguments.shape,
                 fmt::format("A .toml file or one of {}", fmt::join(known_shapes(), ", ")))
      ->required();
  app.add_option("--encoding", arguments.encoding, "f32, f16, bf16, q8_0 or q4_0, for every matrix")
      ->capture_default_str();
  app.add_option("--format", arguments.format, "store or gguf")
      ->check(CLI::IsMember({"store", "gguf"}))
      ->capture_default_str();
  app.add_option("--seed", arguments.seed, "The same seed gives the same weights")->capture_default_str();
  app.add_option("--neuron-bytes", arguments.neuron_bytes, "About so many bytes a neuron (store only)");
  app.add_flag("-q,--quiet", arguments.quiet, "No progress");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help
    fmt::print(stderr, "tier-synth: {}; see --help\n", error.what());
    return 2;
  }
  if (arguments.format == "gguf" && !arguments.neuron_bytes.empty()) {
    fmt::print(stderr, "tier-synth: --neuron-bytes: a GGUF file has no neurons\n");
    return 2;
  }
  const Status made = make_model(arguments);
  if (made.ok()) return 0;
  fmt::print(stderr, "tier-synth: {}\n", made.error().line());
  return 2;
}

}  // namespace
}  // namespace tierd

int main(int argc, char** argv) {
  return tierd::run(argc, argv);
}
