// The tokens that end a turn of a chat, or a text, in all families of models.
#pragma once

#include "core/model/text/vocab.h"

namespace tierd {

// Adds those that the vocabulary has to end_tokens, because a model says nothing after them. Some files have
// them as user-defined or as ordinary tokens; the latter become control tokens. The list is llama.cpp's.
void add_turn_ends(Vocab& vocab);

}  // namespace tierd
