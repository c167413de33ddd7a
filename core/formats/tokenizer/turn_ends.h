// The tokens that end a turn of a chat, or a text, by the names that families of models have given them.
#pragma once

#include "core/model/text/vocab.h"

namespace tierd {

// Adds each of them that the vocabulary has to end_tokens. Files keep some as user-defined tokens, or as
// ordinary ones, which become control tokens; a model that has said one has no more to say. The list is
// llama.cpp's.
void add_turn_ends(Vocab& vocab);

}  // namespace tierd
