// The frame around a trace's header and events; see recorder.h.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

namespace tierd {

static_assert(std::endian::native == std::endian::little);

inline constexpr std::array<char, 8> kTraceMagic = {'t', 'i', 'e', 'r', 'd', 't', 'r', 'c'};
inline constexpr uint32_t kTraceVersion = 24;

struct TraceFileHead {
  std::array<char, 8> magic = kTraceMagic;
  uint32_t version = kTraceVersion;
  uint32_t header_bytes = 0;
  uint64_t header_checksum = 0;
};
static_assert(sizeof(TraceFileHead) == 24);

struct TraceBlockHead {
  uint32_t bytes = 0;
  uint32_t events = 0;
  uint64_t checksum = 0;
};
static_assert(sizeof(TraceBlockHead) == 16);

}  // namespace tierd
