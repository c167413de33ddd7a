// Recognizes a tokenizer.json that describes a vocabulary which other formats can express as well: with
// GPT-2's byte alphabet, or of a sentencepiece model.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/base/result.h"
#include "core/formats/tokenizer/merge_scores.h"
#include "core/model/text/vocab.h"

namespace tierd {

// The options of a BPE model.
struct BpeOptions {
  bool byte_fallback = false;
  bool fuse_unknown = false;
  bool ignore_merges = false;
};

// Returns whether the vocabulary has a piece for each of the 256 bytes.
bool has_byte_alphabet(const Vocab& vocab);

// Changes `vocab`, which is a ranked_bpe with its steps, to a byte_bpe with the same tokens and text.
// Returns false, and changes nothing, if there is none.
bool becomes_byte_bpe(const BpeOptions& options, Vocab& vocab);
// The same for a sentencepiece_bpe, whose scores express `merges`.
bool becomes_sentencepiece_bpe(const BpeOptions& options, const std::vector<Merge>& merges, Vocab& vocab);

}  // namespace tierd
