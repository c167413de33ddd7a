// Which experts the routers of a real mixture have chosen, token by token, as other programs record it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/result.h"

namespace tierd {

struct Routing {
  std::string model;  // as the file calls it, or empty
  uint32_t layers = 0;
  uint32_t experts = 0;                // of each layer
  std::vector<uint64_t> expert_bytes;  // [layers], 0 where the file does not say
  // [tokens][layers] ascending experts; empty where a token did not reach a layer.
  using Token = std::vector<std::vector<uint32_t>>;
  std::vector<Token> prompt;
  std::vector<Token> generated;
};

// Two formats, told apart by the first character:
//   CSV with a line of names, of which `layer`, `expert`, `step` and, if there, `turn` and `phase` (0:
//   prompt) are read, one line an expert; before it lines with #, of which n_expert and expert_bytes are read
//   (BigMoeOnEdge); a JSON object a line, {"tok": 1, "layers": [[6, 8, …], …]}, all of it generated.
// `experts`: of a layer; 0: as the file says, or one more than the largest number in it. Errors: those of the
// file; corrupt, with the line.
Result<Routing> read_routing(const std::string& path, uint32_t experts);

}  // namespace tierd
