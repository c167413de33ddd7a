// Computes the parameters of a layer's random weights from its planted shares. Pre-activations and scores are
// in units of the pre-activation's deviation; a neuron is active above its threshold.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/result.h"
#include "tools/lab/planted/profile.h"

namespace tierd {

struct LayerProfile {
  double active = 0;     // q: the share of neurons that are active
  double predicted = 0;  // P: the share of neurons that are predicted
  double noise = 0;      // epsilon: deviation of the part that the predictor's features do not see
  double spread = 0;     // tau: deviation of the thresholds over the neurons
  double mean = 0;       // mu: mean of the thresholds
  double margin = 0;     // m: added to every score
  double explained() const { return 1 - noise * noise; }  // e
};

// Over the neurons, a pre-activation less its threshold and a score are bivariate normal. Finds the
// correlation with the planted false negatives by bisection over an integral by Simpson's rule.
LayerProfile layer_profile(double active, const PlantedProfile& profile);

// Returns the share of active neurons of each layer: from first to middle (layer n/2 - 1) to last. Both
// halves are bent by one exponent, which gives the planted mean. Error: invalid_argument if none does.
Result<std::vector<double>> active_shares(const PlantedProfile& profile, uint32_t n_layers);

// Returns the rank of a layer's predictor, its constant feature included.
uint32_t predictor_rank(const PlantedProfile& profile, uint32_t layer, uint32_t n_layers, uint32_t d_model);

// The normal distribution's density and upper tail.
double normal_density(double x);
double normal_tail(double x);

}  // namespace tierd
