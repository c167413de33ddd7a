#include "tools/lab/planted/embedding.h"

#include <algorithm>
#include <cmath>

#include "tools/lab/planted/counter_random.h"

namespace tierd {
namespace {

constexpr uint32_t kNoLayer = 0;  // the layer number in the keys of embeddings
constexpr uint32_t kDocumentTokens = 1024;

}  // namespace

void PlantedEmbedding::row(uint32_t token, std::span<float> out) {
  const auto fill = [&](Part& part, Drawn drawn, uint32_t number) {
    if (part.number == number) return;
    part.values.resize(out.size());
    fill_normal(random_key(seed_, kNoLayer, drawn, number), part.values);
    part.number = number;
  };
  fill(document_, Drawn::document, token / kDocumentTokens);
  fill(run_, Drawn::run, run_of(token));
  fill_normal(random_key(seed_, kNoLayer, Drawn::word, token), out);
  const auto document_scale = static_cast<float>(std::sqrt(profile_.document_share));
  const auto run_scale = static_cast<float>(std::sqrt(profile_.run_share));
  const double rest = std::max(0.0, 1 - profile_.document_share - profile_.run_share);
  const auto word_scale = static_cast<float>(std::sqrt(rest));
  for (size_t i = 0; i < out.size(); ++i)
    out[i] = document_scale * document_.values[i] + run_scale * run_.values[i] + word_scale * out[i];
}

uint32_t PlantedEmbedding::run_of(uint32_t token) const {
  const RandomKey key = random_key(seed_, kNoLayer, Drawn::run_start, 0);
  const double starts_below = 0x1p32 / profile_.run_length;
  while (token > 0 && random_word(key, token) >= starts_below) --token;
  return token;
}

}  // namespace tierd
