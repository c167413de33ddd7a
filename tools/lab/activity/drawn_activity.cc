#include "tools/lab/activity/drawn_activity.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "core/base/row_mask.h"

namespace tierd {

Result<std::unique_ptr<DrawnSets>> DrawnSets::create(const ActivityProfile& profile, const ModelPlan& model,
                                                     uint32_t sequences, uint64_t seed) {
  if (std::ranges::any_of(model.sites, &Site::chosen)) {
    return Error{Code::unsupported, "activity",
                 "is supported for networks whose neurons fire or not, but this model is a mixture, whose "
                 "routers choose experts"};
  }
  StickyActivity::Options options;
  options.seed = seed;
  options.sequences = sequences;
  std::vector<std::optional<uint32_t>> drawn(model.sites.size());
  for (SiteId site = 0; site < model.sites.size(); ++site) {
    const Cut& cut = model.any().sites[site].cut;
    if (!is_cut_into<Bundles>(cut) && !is_cut_into<Columns>(cut)) continue;
    drawn[site] = static_cast<uint32_t>(options.neurons.size());
    options.neurons.push_back(model.sites[site].n);
  }
  if (options.neurons.empty()) {
    return Error{
        Code::invalid_argument, "activity",
        "layout 'row' has no neurons that could be inactive; expected model.layout neuron or channel-group"};
  }
  TIERD_ASSIGN(StickyActivity source, StickyActivity::create(profile, std::move(options)));
  std::unique_ptr<DrawnSets> activity(new DrawnSets(std::move(source)));
  activity->drawn_ = std::move(drawn);
  activity->tokens_.resize(activity->source_.layers());
  activity->present_.resize(activity->source_.layers());
  return activity;
}

// Rows of one sequence are consecutive tokens.
void DrawnSets::draw(const Pass& pass) {
  for (auto& of_layer : tokens_) of_layer.resize(pass.rows);
  for (uint32_t r = 0; r < pass.rows; ++r) {
    const auto sequence = static_cast<uint32_t>(pass.sequences[r]);
    source_.next_token(sequence);
    for (uint32_t l = 0; l < source_.layers(); ++l) {
      const ActiveBits bits = source_.active(sequence, l);
      tokens_[l][r].assign(bits.begin(), bits.end());
    }
  }
}

ActiveSet DrawnSets::predicted(SiteId site, const Pass& pass) {
  if (step_ != pass.step) draw(pass);
  step_ = pass.step;
  const uint32_t layer = *drawn_[site];
  Present& present = present_[layer];
  present.row_masks.clear();
  const uint32_t n = source_.neurons(layer);
  if (pass.rows == 1) {
    present.neurons = list_active(tokens_[layer].front());
    return pass.bypass_caches ? ActiveSet::all(n) : present.set();
  }
  const uint32_t words = mask_words(pass.rows);
  masks_.assign(uint64_t{n} * words, 0);
  for (uint32_t r = 0; r < pass.rows; ++r) {
    for (const uint32_t neuron : list_active(tokens_[layer][r]))
      masks_[uint64_t{neuron} * words + r / 64] |= uint64_t{1} << r % 64;
  }
  present.neurons.clear();
  for (uint32_t i = 0; i < n; ++i) {
    const auto mask = std::span(masks_).subspan(uint64_t{i} * words, words);
    if (std::ranges::all_of(mask, [](uint64_t word) { return word == 0; })) continue;
    present.neurons.push_back(i);
    present.row_masks.insert(present.row_masks.end(), mask.begin(), mask.end());
  }
  return pass.bypass_caches ? ActiveSet::all(n) : present.set();
}

Fired DrawnSets::fired(SiteId site) {
  const Present& present = present_[*drawn_[site]];
  Fired fired{present.neurons, {}};
  const uint64_t words = present.neurons.empty() ? 0 : present.row_masks.size() / present.neurons.size();
  for (uint64_t i = 0; i < present.neurons.size(); ++i) {
    uint32_t rows = words == 0 ? 1 : 0;
    for (uint64_t w = 0; w < words; ++w)
      rows += static_cast<uint32_t>(std::popcount(present.row_masks[i * words + w]));
    fired.counts.push_back(rows);
  }
  return fired;
}

Result<std::unique_ptr<DrawnStates>> DrawnStates::create(const ActivityProfile& profile,
                                                         const ModelPlan& model, uint32_t sequences,
                                                         uint64_t seed) {
  if (!profile.cosine) {
    return Error{Code::invalid_argument, "activity",
                 profile.name + " has no table [hidden], which determines the drawn states"};
  }
  std::unique_ptr<DrawnStates> drawn(new DrawnStates);
  std::map<uint16_t, HiddenStates::Options> operators;
  for (SiteId s = 0; s < model.sites.size(); ++s) {
    const Site& site = model.sites[s];
    drawn->n_.push_back(site.n);
    std::optional<Place>& place = drawn->places_.emplace_back();
    if (!is_cut_into<Columns>(model.any().sites[s].cut)) continue;
    const HiddenStates::Options first = {.layers = 0,
                                         .channels = site.n,
                                         .cosine = *profile.cosine,
                                         .seed = seed ^ uint64_t{site.op_group} << 32,
                                         .sequences = sequences};
    place = {site.op_group, operators.try_emplace(site.op_group, first).first->second.layers++};
  }
  if (operators.empty()) {
    return Error{
        Code::invalid_argument, "activity",
        "no site is cut into channels, whose inputs could be drawn; expected model.layout channel-group"};
  }
  for (const auto& [group, options] : operators) drawn->operators_.emplace(group, HiddenStates(options));
  drawn->inputs_.resize(model.sites.size());
  return drawn;
}

// Rows of one sequence are consecutive tokens.
void DrawnStates::draw(const Pass& pass) {
  for (std::vector<float>& input : inputs_) input.clear();
  for (const uint64_t of : pass.sequences) {
    const auto sequence = static_cast<uint32_t>(of);
    for (auto& [group, states] : operators_) states.next_token(sequence);
    for (SiteId site = 0; site < inputs_.size(); ++site) {
      if (!places_[site]) continue;
      const auto state = operators_.at(places_[site]->group).state(sequence, places_[site]->layer);
      inputs_[site].insert(inputs_[site].end(), state.begin(), state.end());
    }
  }
}

std::span<const float> DrawnStates::input(SiteId site, const Pass& pass) {
  if (!places_[site]) return {};
  if (step_ != pass.step) draw(pass);
  step_ = pass.step;
  return inputs_[site];
}

Result<std::unique_ptr<Recording>> draw_activity(const std::string& profile, Drawn drawn,
                                                 const ModelPlan& model, uint32_t sequences, uint64_t seed) {
  const auto read = read_activity_profile(profile);
  if (!read.ok()) return read.error().below("activity");
  std::unique_ptr<Recording> activity;
  if (drawn == Drawn::states) {
    TIERD_ASSIGN(activity, DrawnStates::create(*read, model, sequences, seed));
  } else {
    TIERD_ASSIGN(activity, DrawnSets::create(*read, model, sequences, seed));
  }
  return activity;
}

}  // namespace tierd
