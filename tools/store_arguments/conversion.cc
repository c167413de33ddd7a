#include "tools/store_arguments/conversion.h"

#include <fmt/format.h>

#include "core/base/file.h"
#include "core/base/standard_streams.h"
#include "core/formats/gguf_writer.h"
#include "core/run/store_codec.h"
#include "core/store/source.h"
#include "core/store/store.h"
#include "core/store/writer.h"
#include "tools/store_arguments/store_summary.h"

namespace tierd {

void Conversion::add_to(CommandLine& line) {
  line.option("--tokenizer", tokenizer, "A tokenizer that replaces the model's own").named("FILE");
  store.add_to(line);
  store.add_encodings_to(line);
  line.flag("--verify", verify, "Read the store back and check every extent");
  line.flag("-q,--quiet", quiet, "No progress and no summary");
}

Status Conversion::complete() {
  while (out.size() > 1 && out.back() == '/') out.pop_back();
  if (!makes_gguf() || (!store.given() && !verify)) return {};
  return Error{Code::invalid_argument, "",
               "--neuron-bytes, --layout, --layer-group, --order, --bundling, --compression, --editions, "
               "--codec, --encoding, --head-encoding and --verify apply to stores, but OUT is a GGUF file"};
}

Result<WriteOptions> Conversion::options() const {
  TIERD_ASSIGN(WriteOptions options, store.options());
  options.quiet = quiet;
  return options;
}

Result<std::unique_ptr<TensorSource>> Conversion::open() const {
  return open_source(source, {.tokenizer = tokenizer,
                              .order = store.order(),
                              .layer_group = store.layer_group(),
                              .expert_order = store.experts_in_channels()});
}

Status Conversion::check_new(std::string_view what) const {
  if (!file_exists(out)) return {};
  return Error{
      Code::invalid_argument, out,
      fmt::format("exists, and {} does not overwrite files; remove it or choose another name", what)};
}

Status Conversion::write(const TensorSource& model, const WriteOptions& options) const {
  return makes_gguf() ? write_gguf(model, out, quiet) : write_store(model, out, options);
}

Status Conversion::finish(const std::string& directory) const {
  TIERD_ASSIGN(const Store made, Store::open(directory));
  if (verify) {
    TIERD_ASSIGN(const auto codec, codec_of(made, store.plugin_path()));
    TIERD_TRY(made.verify_all(quiet, codec.get()));
  }
  return quiet ? Status() : write_output(store_summary(made));
}

}  // namespace tierd
