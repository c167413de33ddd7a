#include "tests/fuzz/trace_file.h"

#include <algorithm>
#include <cstring>

#include "core/base/check.h"
#include "core/base/checksum.h"
#include "core/watch/trace/codec.h"
#include "core/watch/trace/file_format.h"

namespace tierd {
namespace {

template <class T>
std::string_view bytes_of(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

// Returns the block's number of events as announced before its bytes: the number that can be decoded, or one.
uint32_t announced(std::string_view block) {
  const auto events = decode_events(std::as_bytes(std::span(block)), "block");
  return events.ok() ? static_cast<uint32_t>(events->size()) : 1;
}

}  // namespace

std::string trace_file(std::string_view input) {
  const size_t nul = std::min(input.find('\0'), input.size());
  const std::string_view header = input.substr(0, nul);
  const std::string_view block = input.substr(std::min(nul + 1, input.size()));
  TraceFileHead head;
  head.header_bytes = static_cast<uint32_t>(header.size());
  head.header_checksum = checksum(header);
  std::string file(bytes_of(head));
  file += header;
  TraceBlockHead of{static_cast<uint32_t>(block.size()), announced(block), checksum(block)};
  file.append(bytes_of(of)).append(block).append(bytes_of(TraceBlockHead()));
  return file;
}

std::string input_of_trace(std::string_view file) {
  TraceFileHead head;
  TraceBlockHead block;
  TIERD_CHECK(file.size() > sizeof head);
  std::memcpy(&head, file.data(), sizeof head);
  file.remove_prefix(sizeof head);
  TIERD_CHECK(file.size() > head.header_bytes + sizeof block);
  std::string input(file.substr(0, head.header_bytes));
  file.remove_prefix(head.header_bytes);
  std::memcpy(&block, file.data(), sizeof block);
  TIERD_CHECK(file.size() >= sizeof block + block.bytes);
  return input + std::string(1, '\0') + std::string(file.substr(sizeof block, block.bytes));
}

}  // namespace tierd
