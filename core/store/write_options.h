// Layout and encoding of a store to be written.
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
  // Target bytes of a run of rows; 0: by the model's size, from 16 KiB to 512 KiB (from about 256 MB on).
  uint64_t neuron_bytes = 0;
  Layout layout = Layout::row;
  Bundling bundling = Bundling::row_column;
  uint32_t layer_group = 1;  // layout channel_group: layers whose channels of one number are contiguous
  ExpertCut experts = ExpertCut::whole;  // `channels` requires layout channel_group and a mixture
  // Compresses the sites that it makes smaller. Requires layout row, or layout neuron without pieces.
  Compression compression = Compression::none;
  // Refuses, before anything is written, a compression that makes no site smaller; the error names the
  // tokenizer that the user gave with the model.
  bool refuse_vain_compression = false;
  std::string tokenizer = {};
  std::shared_ptr<const NeuronCodec> codec = {};  // set if and only if the compression is a codec
  // Encodings of the layers' matrices, and of embedding and head, in place of the source's.
  std::optional<Encoding> encoding = {};
  std::optional<Encoding> head_encoding = {};
  // Further editions of the neurons of feed-forward networks, bundles or experts: each encoding has fewer
  // bits than the one before, and than the site's own.
  std::vector<Encoding> editions = {};
  bool quiet = false;  // shows no progress
};

}  // namespace tierd
