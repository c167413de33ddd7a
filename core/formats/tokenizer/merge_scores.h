// Computes scores with which sentencepiece's algorithm merges like a list of ranked merges.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/base/result.h"
#include "core/model/text/vocab.h"

namespace tierd {

using Merge = std::pair<std::string, std::string>;

// Sets vocab.scores. A score only orders the resulting pieces, so each way to split a piece must be among
// `merges`, and the merges of one piece must be consecutive. Lists made from a sentencepiece model satisfy
// this. Errors, naming `origin`: corrupt (a merge of missing pieces), unsupported (other lists).
Status set_scores_from_merges(const std::vector<Merge>& merges, const std::string& origin, Vocab& vocab);

}  // namespace tierd
