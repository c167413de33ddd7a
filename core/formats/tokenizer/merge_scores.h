// Scores that make sentencepiece's algorithm merge as a list of ranked merges does.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/base/result.h"
#include "core/model/text/vocab.h"

namespace tierd {

using Merge = std::pair<std::string, std::string>;

// Sets vocab.scores. Scores say only which piece goes first; so each way to put a piece together must be
// among `merges`, and those of one piece must follow each other. Lists made from a sentencepiece model are
// like that. Errors, naming `origin`: corrupt (a merge of pieces that are not there), unsupported (others).
Status set_scores_from_merges(const std::vector<Merge>& merges, const std::string& origin, Vocab& vocab);

}  // namespace tierd
