// The chat template of a run: the one that the command line names, or the model's own.
#pragma once

#include "core/base/result.h"
#include "core/model/text/chat_template.h"
#include "tools/tierd/arguments.h"

namespace tierd {

// Errors: those of ChatTemplate, and of the file of --chat-template-file.
Result<ChatTemplate> chat_form(const Arguments& arguments, const Vocab& vocab);

// Returns whether the command line names a template.
bool names_chat_form(const Arguments& arguments);

}  // namespace tierd
