#include "tools/store_arguments/store_arguments.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "core/base/units.h"
#include "core/config/config.h"
#include "core/run/store_codec.h"
#include "core/store/encoding_choice.h"

namespace tierd {
namespace {

template <class... Words>
std::vector<std::string> encodings_or(Words... words) {
  std::vector<std::string> all = {words...};
  for (const Encoding encoding : kAllEncodings) all.emplace_back(name(encoding));
  return all;
}

}  // namespace

void StoreArguments::add_to(CommandLine& line) {
  arguments_ = {
      line.option("--neuron-bytes", neuron_bytes_,
                  "Approximate size of a neuron of rows, such as 256KiB (default: by the model's size)")
          .named("SIZE"),
      line.option("--layout", layout_,
                  "row: every matrix in groups of rows; neuron: the FFN in bundles of a row of gate and up "
                  "and a column of down; channel-group: every matrix of the layers in input channels")
          .named("LAYOUT")
          .one_of({"row", "neuron", "channel-group"})
          .shows_default(),
      line.option("--layer-group", layer_group_,
                  "For layout channel-group: number of consecutive layers whose channels of the same number "
                  "are contiguous")
          .named("N")
          .between(1, static_cast<int>(kMostLayersOfGroup))
          .shows_default(),
      line.option("--experts", experts_,
                  "For a mixture in layout channel-group: whole, one neuron for each expert; channels, one "
                  "for each channel of an expert, for large experts of which memory holds few")
          .named("CUT")
          .one_of({"whole", "channels"})
          .shows_default(),
      line.option(
              "--order", order_,
              "For layout channel-group: a file of rates, written by tier profile --thresholds; the channels "
              "with the highest rates are stored next to each other (default: in the order of their numbers)")
          .named("FILE"),
      line.option("--bundling", bundling_,
                  "For layout neuron: row-column, the rows and the column of a neuron in one extent; none, "
                  "in separate ones, for comparison")
          .named("BUNDLING")
          .one_of({"row-column", "none"})
          .shows_default(),
      line.option(
              "--compression", compression_,
              "Lossless compression of every matrix that becomes smaller: bitmap, for pruned models, one bit "
              "for each weight, then the non-zero weights; zstd or another codec compresses each neuron")
          .named("COMPRESSION")
          .shows_default(),
      line.option("--editions", editions_,
                  "none, or further encodings for bundles and experts, each smaller than the one before, as "
                  "in q8_0,q4_0, for quantizers that mix them")
          .named("LIST")
          .shows_default(),
      line.option(
              "--codec", codec_settings_,
              "A parameter of the codec, such as level=19; may be repeated (tierd --plugin zstd lists them)")
          .named("KEY=VALUE"),
  };
  line.option("--plugin-path", plugin_folders_, "A folder with codecs; may be repeated").named("DIR");
}

void StoreArguments::add_encodings_to(CommandLine& line) {
  arguments_.push_back(line.option("--encoding", encoding_,
                                   "Encoding of the matrices: source, that of the model, or another one, "
                                   "which can be lossy: the summary has the error")
                           .named("ENCODING")
                           .one_of(encodings_or("source"))
                           .shows_default());
  arguments_.push_back(
      line.option("--head-encoding", head_encoding_,
                  "Encoding of embedding and head: same, that of --encoding; source; or another one")
          .named("ENCODING")
          .one_of(encodings_or("same", "source"))
          .shows_default());
}

bool StoreArguments::given() const {
  return std::ranges::any_of(arguments_, &Argument::given);
}

Result<WriteOptions> StoreArguments::options() const {
  WriteOptions options{.layout = *by_name<Layout>(layout_),
                       .bundling = *by_name<Bundling>(bundling_),
                       .layer_group = layer_group_,
                       .experts = *by_name<ExpertCut>(experts_),
                       .encoding = by_name<Encoding>(encoding_)};
  TIERD_ASSIGN(options.editions, parse_editions(editions_, "--editions"));
  options.head_encoding = head_encoding_ == "same" ? options.encoding : by_name<Encoding>(head_encoding_);
  if (!neuron_bytes_.empty()) {
    TIERD_ASSIGN(options.neuron_bytes, parse_bytes(neuron_bytes_, "--neuron-bytes"));
  }
  // Parsed as --set parses them, under the table that names a codec in a configuration.
  std::vector<std::string> overrides;
  for (const std::string& setting : codec_settings_) {
    if (setting.find('=') == std::string::npos)
      return Error{Code::invalid_argument, "--codec", fmt::format("is '{}', expected KEY=VALUE", setting)};
    overrides.push_back("codec." + setting);
  }
  Result<Config> read = load_config({}, overrides);
  if (!read.ok())
    return Error{Code::invalid_argument, "--codec",
                 fmt::format("is '{}', expected KEY=VALUE", fmt::join(codec_settings_, " "))};
  Config config = std::move(*read);
  for (Setting& setting : config.codec) setting.origin = "--codec";
  TIERD_TRY(choose_compression(compression_, plugin_path(), config.codec, "--compression", options));
  return options;
}

PluginPath StoreArguments::plugin_path() const {
  return PluginPath::usual(fmt::format("{}", fmt::join(plugin_folders_, ":")));
}

}  // namespace tierd
