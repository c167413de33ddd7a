#include "core/run/store_codec.h"

#include <fmt/format.h>

#include "core/run/strategy_choices.h"
#include "core/strategy/codec.h"

namespace tierd {

Status choose_compression(std::string_view name, const PluginPath& path, const std::vector<Setting>& settings,
                          std::string_view key, WriteOptions& options) {
  if (const auto compression = compression_by_name(name)) {
    if (!settings.empty()) {
      return Error{
          Code::invalid_argument, settings.front().origin,
          fmt::format("'{}' is a parameter of a codec, but {} is '{}'", settings.front().key, key, name)};
    }
    options.compression = *compression;
    return {};
  }
  auto codec = Codec::load(path, name, settings, key);
  if (codec.code() == Code::not_found)
    return Error{Code::not_found, std::string(key),
                 fmt::format("expected none, bitmap or the name of a codec: {}", codec.error().detail)};
  if (!codec.ok()) return codec.error();
  options.compression = Compression::codec;
  options.codec = std::move(*codec);
  return {};
}

Result<std::shared_ptr<const NeuronCodec>> codec_of(const Store& store, const PluginPath& path,
                                                    const std::vector<Setting>& settings) {
  const Manifest& manifest = store.manifest();
  if (manifest.compression != Compression::codec) return std::shared_ptr<const NeuronCodec>();
  auto codec = Codec::load(path, manifest.codec, settings, store.directory());
  if (codec.ok()) return std::shared_ptr<const NeuronCodec>(std::move(*codec));
  Error error = codec.error();
  if (error.origin != store.directory()) return error;
  error.detail = fmt::format("its neurons are compressed by codec '{}': {}", manifest.codec, error.detail);
  return error;
}

Result<std::shared_ptr<const NeuronCodec>> codec_of(const Store& store, const Config& config) {
  const bool same = config.compression == store.manifest().codec;
  return codec_of(store, plugin_path(config), same ? config.codec : std::vector<Setting>());
}

}  // namespace tierd
