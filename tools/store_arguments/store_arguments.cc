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
                  "About so many bytes a neuron of rows, such as 256KiB (default: by the model's size)")
          .named("SIZE"),
      line.option("--layout", layout_,
                  "row: every matrix in runs of rows; neuron: the FFN in bundles of a row of gate and up and "
                  "a column of down; channel-group: every matrix of the layers in input channels")
          .named("LAYOUT")
          .one_of({"row", "neuron", "channel-group"})
          .shows_default(),
      line.option("--layer-group", layer_group_,
                  "Of layout channel-group: of so many layers the channels of one number lie side by side")
          .named("N")
          .between(1, static_cast<int>(kMostLayersOfGroup))
          .shows_default(),
      line.option("--experts", experts_,
                  "Of a mixture in layout channel-group: whole, or channels, each expert cut as the other "
                  "operators are, for large experts of which memory holds few")
          .named("CUT")
          .one_of({"whole", "channels"})
          .shows_default(),
      line.option(
              "--order", order_,
              "Of layout channel-group: rates that tier-profile --thresholds has written; the channels that "
              "are used most lie side by side (default: they lie by their numbers)")
          .named("FILE"),
      line.option("--bundling", bundling_,
                  "Of layout neuron: row-column, or none: rows and columns of a neuron apart, to compare")
          .named("BUNDLING")
          .one_of({"row-column", "none"})
          .shows_default(),
      line.option(
              "--compression", compression_,
              "Of every matrix that this makes smaller, without loss: bitmap keeps a bit for each weight and "
              "those that are not zero, of pruned models; zstd, or another codec, compresses each neuron")
          .named("COMPRESSION")
          .shows_default(),
      line.option("--editions", editions_,
                  "none, or encodings such as q8_0,q4_0, each smaller than the one before: bundles and "
                  "experts are stored in these as well, for quantizers that mix them")
          .named("LIST")
          .shows_default(),
      line.option("--codec", codec_settings_,
                  "What the codec is told, such as level=19; may be repeated (tierd --plugin zstd)")
          .named("KEY=VALUE"),
  };
  line.option("--plugin-path", plugin_folders_, "A folder with codecs; may be repeated").named("DIR");
}

void StoreArguments::add_encodings_to(CommandLine& line) {
  arguments_.push_back(
      line.option("--encoding", encoding_,
                  "Of the matrices: source, as the model has them, or another, which may lose something: the "
                  "summary says how much")
          .named("ENCODING")
          .one_of(encodings_or("source"))
          .shows_default());
  arguments_.push_back(line.option("--head-encoding", head_encoding_,
                                   "Of embedding and head: the same, source, or one of their own")
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
