// Published chat templates of which it is known, to the last character that matters, what they write: each
// was compared with what Jinja makes of it for some hundred chats (tests/golden/judge_chat_templates.py).
#pragma once

#include <cstdint>
#include <string_view>

namespace tierd {

// A system's words that are empty are written as any others, or left out: all, or at the beginning.
enum class EmptySystem : uint8_t { stays, goes, goes_first };

struct KnownTemplate {
  uint64_t checksum = 0;    // of its canonical text (canonical_jinja)
  std::string_view family;  // whose form it writes
  // Chats of which it writes something else than the family does are refused:
  bool takes_turns = false;     // after the system, user and assistant in turns
  bool ends_with_user = false;  // a chat that the assistant has ended
  bool system_first = false;    // a system's words further down
  EmptySystem empty_system = EmptySystem::stays;
  const char* silent = nullptr;  // a default text of the system, another than the family's
};

// nullptr where it is not known.
const KnownTemplate* find_known_template(std::string_view chat_template);

}  // namespace tierd
