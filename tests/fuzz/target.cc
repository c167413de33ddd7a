#include "tests/fuzz/target.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace tierd {

std::string_view take_text(std::string_view& input) {
  const size_t end = std::min(input.find('\0'), input.size());
  const std::string_view text = input.substr(0, end);
  input.remove_prefix(std::min(end + 1, input.size()));
  return text;
}

}  // namespace tierd

// The entry point of libFuzzer.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  tierd::fuzz({reinterpret_cast<const char*>(bytes), size});
  return 0;
}
