#include "tools/lab/activity/sticky_activity.h"

#include <bit>
#include <cmath>
#include <utility>

#include "tools/lab/activity/closed_forms.h"
#include "tools/lab/activity/normal.h"
#include "tools/lab/activity/random_bits.h"

namespace tierd {
namespace {

constexpr uint32_t kWord = 64;

uint32_t words(uint32_t n) {
  return (n + kWord - 1) / kWord;
}

bool bit(const std::vector<uint64_t>& bits, uint32_t i) {
  return (bits[i / kWord] >> i % kWord & 1) != 0;
}

// Draws a bit for each of n neurons; bits behind the last one are 0.
std::vector<uint64_t> coins(const RandomBits& random, uint32_t n, double probability) {
  std::vector<uint64_t> heads;
  for (uint32_t w = 0; w < words(n); ++w) heads.push_back(random.coins(w, chance_of(probability)));
  if (n % kWord != 0) heads.back() &= (uint64_t{1} << n % kWord) - 1;
  return heads;
}

}  // namespace

Result<StickyActivity> StickyActivity::create(const ActivityProfile& profile, Options options) {
  const auto n_layers = static_cast<uint32_t>(options.neurons.size());
  TIERD_ASSIGN(const std::vector<BetaRates> rates, layer_rates(profile, n_layers, options.by_depth));
  StickyActivity activity(profile, std::move(options));
  for (uint32_t l = 0; l < n_layers; ++l) {
    if (l == 0 || activity.options_.by_depth) activity.tables_.emplace_back(rates[l]);
    activity.layers_.push_back({.n = activity.options_.neurons[l],
                                .table = static_cast<uint32_t>(activity.tables_.size() - 1),
                                .mean = mean_rate(rates[l]),
                                .draw = {},
                                .copies = {}});
    activity.make_copies(l);
  }
  return activity;
}

// The parent is drawn from the same block, so that a block means the same in all layers.
void StickyActivity::make_copies(uint32_t layer) {
  Layer& at = layers_[layer];
  const RandomBits is_copy(options_.seed, DrawnFor::is_copy, layer, 0);
  at.draw = coins(is_copy, at.n, layer == 0 ? 1 : 1 - profile_.kappa);
  const RandomBits parent(options_.seed, DrawnFor::parent, layer, 0);
  const RandomBits shift(options_.seed, DrawnFor::shift, layer, 0);
  const auto most_shift = static_cast<int64_t>(profile_.shift * 0x1p32);
  for (uint32_t block = 0; layer > 0 && block < profile_.blocks; ++block) {
    const uint32_t first = block_begin(block, layers_[layer - 1].n);
    const uint32_t count = block_begin(block + 1, layers_[layer - 1].n) - first;
    for (uint32_t i = block_begin(block, at.n); i < block_begin(block + 1, at.n); ++i) {
      if (bit(at.draw, i)) continue;
      if (count == 0) {  // no parent: the layer before has fewer neurons than blocks
        at.draw[i / kWord] |= uint64_t{1} << i % kWord;
        continue;
      }
      const int64_t shifted = (2 * most_shift * int64_t{shift.half(i)} >> 32) - most_shift;
      at.copies.push_back({i, first + parent.below(i, count), static_cast<uint32_t>(shifted)});
    }
  }
}

std::vector<float> StickyActivity::place_rates(uint32_t layer, uint32_t text,
                                               const std::vector<float>& before) const {
  const Layer& at = layers_[layer];
  const RandomBits rate(options_.seed, DrawnFor::rate, layer, 0);
  const RandomBits other_rate(options_.seed, DrawnFor::context_rate, layer, text);
  const std::vector<uint64_t> other =
      coins(RandomBits(options_.seed, DrawnFor::context, layer, text), at.n, profile_.chi);
  const RandomBits topic(options_.seed, DrawnFor::topic, layer, text);
  const double of_block = std::sqrt(profile_.eta), own = std::sqrt(1 - profile_.eta);
  std::vector<float> places(at.n);
  for (uint32_t block = 0; block < profile_.blocks; ++block) {
    const double shared = profile_.eta > 0 ? of_block * normal_of(topic.half(block)) : 0;
    for (uint32_t i = block_begin(block, at.n); i < block_begin(block + 1, at.n); ++i)
      places[i] = static_cast<float>(shared + own * normal_of((bit(other, i) ? other_rate : rate).half(i)));
  }
  for (const Copy& copy : at.copies) places[copy.neuron] = before[copy.parent];
  return places;
}

// Moves the positions of all neurons except copies so that the layer's mean rate is the profile's: a topic
// only decides which blocks are hot, and with few blocks some layers of some sequences would be much hotter
// than others. Copies keep their parents' positions.
void StickyActivity::recentre(const Layer& layer, std::vector<float>& places) const {
  constexpr int kHalvings = 20;
  const RateTable& table = tables_[layer.table];
  const auto sum_of = [&](bool drawn, double by) {
    double sum = 0;
    for (uint32_t i = 0; i < layer.n; ++i) {
      if (bit(layer.draw, i) == drawn) sum += table.rate(places[i] + by);
    }
    return sum;
  };
  const double wanted = layer.mean * layer.n - sum_of(false, 0);
  double least = -kMostNormal, most = kMostNormal;
  for (int i = 0; i < kHalvings; ++i) {
    const double by = (least + most) / 2;
    (sum_of(true, by) < wanted ? least : most) = by;
  }
  for (uint32_t i = 0; i < layer.n; ++i) {
    if (bit(layer.draw, i)) places[i] = static_cast<float>(places[i] + least);
  }
}

void StickyActivity::begin(uint32_t sequence) {
  Sequence& of = sequences_[sequence];
  std::vector<float> places;
  for (uint32_t l = 0; l < layers(); ++l) {
    places = place_rates(l, options_.first_text + sequence, places);
    if (profile_.eta > 0) recentre(layers_[l], places);
    LayerState& state = of.layers.emplace_back();
    state.events.resize(layers_[l].n);
    state.bits.resize(words(layers_[l].n));
    const RateTable& table = tables_[layers_[l].table];
    for (const float place : places) state.thresholds.push_back(table.threshold(place));
  }
}

void StickyActivity::next_token(uint32_t sequence) {
  Sequence& of = sequences_[sequence];
  if (of.tokens == 0) begin(sequence);
  for (uint32_t l = 0; l < layers(); ++l) {
    draw_events(l, options_.first_text + sequence, of);
    if (l > 0) copy_events(layers_[l], of.layers[l - 1], of.layers[l]);
  }
  ++of.tokens;
}

void StickyActivity::draw_events(uint32_t layer, uint32_t text, Sequence& sequence) const {
  const Layer& at = layers_[layer];
  LayerState& state = sequence.layers[layer];
  const uint64_t place = uint64_t{text} << 32 | static_cast<uint32_t>(sequence.tokens);
  const RandomBits renewal(options_.seed, DrawnFor::renewal, layer, place);
  const RandomBits event(options_.seed, DrawnFor::event, layer, place);
  const uint64_t chance = chance_of(sequence.tokens == 0 ? 1 : 1 - profile_.lambda);
  for (uint32_t w = 0; w < at.draw.size(); ++w) {
    const uint64_t renewed = renewal.coins(w, chance) & at.draw[w];
    uint64_t now = 0;
    for (uint64_t left = renewed; left != 0; left &= left - 1) {
      const auto b = static_cast<uint32_t>(std::countr_zero(left));
      const uint32_t i = w * kWord + b;
      const uint32_t u = event.half(i);
      state.events[i] = u;
      now |= uint64_t{u < state.thresholds[i]} << b;
    }
    // Copies are computed again in every token.
    state.bits[w] = (state.bits[w] & at.draw[w] & ~renewed) | now;
  }
}

void StickyActivity::copy_events(const Layer& layer, const LayerState& before, LayerState& state) const {
  for (const Copy& copy : layer.copies) {
    const uint32_t u = before.events[copy.parent] + copy.shift;
    state.events[copy.neuron] = u;
    state.bits[copy.neuron / kWord] |= uint64_t{u < state.thresholds[copy.neuron]} << copy.neuron % kWord;
  }
}

}  // namespace tierd
