// The tokens that end a turn of a chat, or a text, by the names that families of models have given them.
#pragma once

#include "core/text/vocab.h"

namespace tierd {

// Adds each of them that the vocabulary has to end_tokens, and makes it a control token: files keep some as
// ordinary or user-defined tokens, and a model that has said one has no more to say. The list is llama.cpp's.
void add_turn_ends(Vocab& vocab);

}  // namespace tierd
