// Published chat templates whose output is known exactly: each was compared with Jinja's output for some
// hundred chats (tests/golden/judge_chat_templates.py).
#pragma once

#include <cstdint>
#include <string_view>

namespace tierd {

// The treatment of an empty system message: written, or left out, everywhere or only at the beginning.
enum class EmptySystem : uint8_t { stays, goes, goes_first };

struct KnownTemplate {
  uint64_t checksum = 0;    // of the canonical text (canonical_jinja)
  std::string_view family;  // the family with the same output
  // Chats for which the template's output differs from the family's are refused:
  bool takes_turns = false;     // requires user and assistant in turns, after the system message
  bool ends_with_user = false;  // refuses a chat that ends with the assistant
  bool system_first = false;    // refuses a system message that is not first
  EmptySystem empty_system = EmptySystem::stays;
  const char* silent = nullptr;  // default system message, if it differs from the family's
};

// Returns nullptr if the template is not known.
const KnownTemplate* find_known_template(std::string_view chat_template);

}  // namespace tierd
