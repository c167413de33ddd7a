// SmoothQuant: moves the difficulty of quantization from activations to weights.
#pragma once

#include <span>

#include "tools/lab/prune/layer_weights.h"

namespace tierd {

// Divides channel j of a norm by s_j = max|X_j|^a / max|W_j|^(1 - a) and multiplies column j of the operators
// that read it by s_j (SmoothQuant, equation 4), so that their results stay the same up to rounding. max|W_j|
// is over all of these operators, `largest` [d_model] is max|X_j| over the calibration, `strength` is a, from
// 0 to 1. A channel without activations or without weights is not changed. Zeros stay zeros.
void smooth(NormWeights& norm, std::span<LinearWeights* const> operators, std::span<const float> largest,
            float strength);

}  // namespace tierd
