// How a store is to be laid out and written.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/model/layout/neuron_codec.h"
#include "core/store/manifest.h"

namespace tierd {

struct WriteOptions {
  // A run of rows holds about so many bytes; 0: by the model's size, 16 KiB for toys, 512 KiB from
  // about 256 MB on.
  uint64_t neuron_bytes = 0;
  Layout layout = Layout::row;
  Bundling bundling = Bundling::row_column;
  uint32_t layer_group = 1;              // of layout channel_group: layers whose channels lie side by side
  ExpertCut experts = ExpertCut::whole;  // channels goes with layout channel_group, and with mixtures
  // Sites that it makes smaller are compressed. It goes with layouts row and neuron, where nothing is in
  // pieces.
  Compression compression = Compression::none;
  // Refuses, before anything is written, a compression that makes no site smaller; the error names the
  // tokenizer that the user gave with the model.
  bool refuse_vain_compression = false;
  std::string tokenizer = {};
  std::shared_ptr<const NeuronCodec> codec = {};  // where that is the compression, and nowhere else
  // Instead of the source's own, of the layers' matrices and of embedding and head; which may lose something:
  // the manifest says how much.
  std::optional<Encoding> encoding = {};
  std::optional<Encoding> head_encoding = {};
  // What the neurons of feed-forward networks, bundles or experts, are stored in once more: each in fewer
  // bits than the one before, and than the site's own.
  std::vector<Encoding> editions = {};
  bool quiet = false;  // no progress
};

}  // namespace tierd
