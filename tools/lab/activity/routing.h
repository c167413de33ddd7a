// The experts that the routers of a real mixture have chosen, token by token, as other programs record them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/align.h"
#include "core/base/result.h"

namespace tierd {

struct Routing {
  std::string model;  // the name in the file, or empty
  uint32_t layers = 0;
  uint32_t experts = 0;                // of each layer
  std::vector<uint64_t> expert_bytes;  // [layers] at most kMostExpertBytes; 0 if the file does not say
  // The experts that a token chose in one layer: ascending, at least one.
  struct Choice {
    uint32_t layer = 0;
    std::vector<uint32_t> experts;
    bool operator==(const Choice&) const = default;
  };
  // The layers that a token reached, ascending.
  using Token = std::vector<Choice>;
  std::vector<Token> prompt;
  std::vector<Token> generated;
};

// An expert fills a slot, whose bytes are a multiple of the disk's alignment in 32 bits.
inline constexpr uint64_t kMostExpertBytes = align_down(UINT32_MAX, kDirectIoAlignment);

// Reads one of two formats, told apart by the first character:
//   CSV with a line of names. The columns `layer`, `expert`, `step` and, if present, `turn` and `phase` (0:
//   prompt) are read, one line an expert; of the lines with # before it, n_expert and expert_bytes
//   (BigMoeOnEdge).
//   A JSON object a line, {"tok": 1, "layers": [[6, 8, …], …]}, all of it generated.
// `experts`: of a layer; 0: as the file says, or one more than the largest number in it. Memory grows with
// the file: its layers have at most 262,144 experts together, and one more for each of its bytes. Errors:
// those of the file; corrupt, with the line.
Result<Routing> read_routing(const std::string& path, uint32_t experts);

}  // namespace tierd
