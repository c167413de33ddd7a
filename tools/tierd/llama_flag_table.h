// Every flag that llama-server and llama-cli have, and what becomes of it here.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace tierd {

struct LlamaFlag {
  enum class Value : uint8_t {
    none,
    one,
    maybe,  // a word behind that begins with no dash
  };
  std::vector<std::string_view> names;
  Value value = Value::none;
  std::string_view ours = {};      // the flag that it becomes; empty: none
  std::string_view accepted = {};  // values that ask for what tierd does, divided by '|'; "*": whatever it is
  std::string_view instead = {};   // why it is refused, and what to use
  std::string_view missing = {};   // the value where none stands behind
};

// Those that tierd has under the same name are not among them.
const std::vector<LlamaFlag>& llama_flags();

}  // namespace tierd
