// The tokens that end a turn of a chat, or a text, in all families of models.
#pragma once

#include <cstdint>

#include "core/model/text/vocab.h"

namespace tierd {

// The treatment of an end of turn that a file has as an ordinary token: it becomes a control token, or
// remains what the list of added tokens of a tokenizer.json says.
enum class OrdinaryEnds : uint8_t { become_control, remain };

// Adds those that the vocabulary has to end_tokens, because a model says nothing after them. Some files have
// them as user-defined or as ordinary tokens. The list is llama.cpp's.
void add_turn_ends(OrdinaryEnds ordinary, Vocab& vocab);

}  // namespace tierd
