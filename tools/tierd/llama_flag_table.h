// Every flag of llama-server and llama-cli that tierd does not have under the same name.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace tierd {

struct LlamaFlag {
  enum class Value : uint8_t {
    none,
    one,
    maybe,  // a following word that does not begin with a dash
  };
  std::vector<std::string_view> names;
  Value value = Value::none;
  std::string_view ours = {};      // tierd's flag with the same meaning; empty: none
  std::string_view accepted = {};  // values of tierd's own behaviour, separated by '|'; "*": any
  std::string_view instead = {};   // why it is refused, and the alternative
  std::string_view missing = {};   // the value where no word follows
};

const std::vector<LlamaFlag>& llama_flags();

}  // namespace tierd
