#include "tools/tierd/model_tokenizer.h"

#include "core/formats/tokenizer/tokenizer_files.h"
#include "core/store/source.h"

namespace tierd {

Result<std::unique_ptr<Tokenizer>> model_tokenizer(const Config& config, const Store& store) {
  const Manifest& manifest = store.manifest();
  // Only a store: a source has read the named file already.
  if (is_store(config.model) && !config.tokenizer.empty()) {
    TIERD_ASSIGN(Vocab vocab, read_tokenizer_file(config.tokenizer, manifest.config.vocab_size));
    if (vocab.pieces.size() > manifest.config.vocab_size) {
      return Error{Code::invalid_argument, config.tokenizer,
                   std::to_string(vocab.pieces.size()) + " tokens are more than the " +
                       std::to_string(manifest.config.vocab_size) + " of the model"};
    }
    return make_tokenizer(std::move(vocab), config.tokenizer);
  }
  if (!manifest.has_vocab) {
    return Error{Code::not_found, config.model, "the model has no tokenizer; name one with --tokenizer"};
  }
  return make_tokenizer(manifest.vocab, store.directory());
}

}  // namespace tierd
