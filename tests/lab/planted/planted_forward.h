// A forward pass over whole texts that also returns the active and the predicted neurons. Its products are
// optimized; the test compares its logits with the reference's.
#pragma once

#include <algorithm>
#include <cmath>
#include <span>
#include <string>
#include <vector>

#include "core/model/config.h"
#include "core/model/layout/codec.h"
#include "tools/lab/planted/kernels.h"
#include "tools/lab/planted/planted_source.h"

namespace tierd {

// [rows][cols]
struct Matrix {
  uint32_t rows = 0;
  uint32_t cols = 0;
  std::vector<float> values;

  Matrix(uint32_t r, uint32_t c) : rows(r), cols(c), values(uint64_t{r} * c) {}
  float& at(uint32_t row, uint32_t col) { return values[uint64_t{row} * cols + col]; }
  float at(uint32_t row, uint32_t col) const { return values[uint64_t{row} * cols + col]; }
};

inline Matrix tensor_of(const TensorSource& source, const std::string& name) {
  const TensorInfo& info = *source.find(name);
  Matrix matrix(static_cast<uint32_t>(info.rows), static_cast<uint32_t>(info.cols));
  matrix.values = *source.read_f32(info);
  return matrix;
}

// Returns x, [tokens][in], times the transpose of weight, [out][in].
inline Matrix linear(const Matrix& weight, const Matrix& x) {
  PackedMatrix columns(x.cols, x.rows);
  std::vector<float> column(x.rows);
  for (uint32_t k = 0; k < x.cols; ++k) {
    for (uint32_t t = 0; t < x.rows; ++t) column[t] = x.at(t, k);
    columns.set_row(k, column);
  }
  Matrix turned(weight.rows, x.rows);
  planted_kernels().multiply(weight.values.data(), weight.rows, columns, turned.values.data());
  Matrix out(x.rows, weight.rows);
  for (uint32_t i = 0; i < weight.rows; ++i) {
    for (uint32_t t = 0; t < x.rows; ++t) out.at(t, i) = turned.at(i, t);
  }
  return out;
}

inline Matrix layer_norm(const Matrix& x, float eps, float shift) {
  Matrix out(x.rows, x.cols);
  for (uint32_t t = 0; t < x.rows; ++t) {
    float mean = 0;
    for (uint32_t i = 0; i < x.cols; ++i) mean += x.at(t, i);
    mean /= static_cast<float>(x.cols);
    float squares = 0;
    for (uint32_t i = 0; i < x.cols; ++i) squares += (x.at(t, i) - mean) * (x.at(t, i) - mean);
    const float scale = 1 / std::sqrt(squares / static_cast<float>(x.cols) + eps);
    for (uint32_t i = 0; i < x.cols; ++i) out.at(t, i) = (x.at(t, i) - mean) * scale + shift;
  }
  return out;
}

// Each token attends to itself and to earlier tokens of its text. A text has `tokens` consecutive rows.
inline Matrix attend(const Matrix& q, const Matrix& k, const Matrix& v, uint32_t head_dim, uint32_t tokens) {
  Matrix out(q.rows, q.cols);
  std::vector<float> scores(q.rows);
  for (uint32_t head = 0; head < q.cols; head += head_dim) {
    for (uint32_t t = 0; t < q.rows; ++t) {
      const uint32_t first = t / tokens * tokens;
      float sum = 0;
      for (uint32_t p = first; p <= t; ++p) {
        float score = 0;
        for (uint32_t i = head; i < head + head_dim; ++i) score += q.at(t, i) * k.at(p, i);
        scores[p] = std::exp(score / std::sqrt(static_cast<float>(head_dim)));
        sum += scores[p];
      }
      for (uint32_t p = first; p <= t; ++p) {
        for (uint32_t i = head; i < head + head_dim; ++i) out.at(t, i) += scores[p] / sum * v.at(p, i);
      }
    }
  }
  return out;
}

// One layer. Rows are the tokens of all texts, text after text.
struct LayerSets {
  Matrix normed;                             // the FFN's input, [rows][d_model]
  std::vector<std::vector<bool>> active;     // [rows][neurons]
  std::vector<std::vector<bool>> predicted;  // [rows][neurons]
};

struct PlantedPass {
  std::vector<LayerSets> layers;
  Matrix logits{0, 0};  // [rows][vocab]
};

// Returns b (a x) with the tables rounded to f16, as they are stored. Uses the first `kept` of the features
// before the constant one.
inline Matrix predictor_scores(const PlantedSource& source, uint32_t layer, const Matrix& x,
                               uint32_t kept = UINT32_MAX) {
  const PlantedFfn& ffn = source.ffn(layer);
  const auto [d_model, d_ff, rank] = ffn.shape();
  Matrix a(rank, d_model);
  for (uint32_t row = 0; row < rank; ++row)
    ffn.predictor_a(row, std::span(a.values).subspan(uint64_t{row} * d_model, d_model));
  Matrix b(d_ff, rank);
  const auto features = source.features(layer);
  for (uint32_t row = 0; row < d_ff; ++row) {
    ffn.predictor_b(*features, row, std::span(b.values).subspan(uint64_t{row} * rank, rank));
    for (uint32_t feature = std::min(kept, rank - 1); feature < rank - 1; ++feature) b.at(row, feature) = 0;
  }
  for (Matrix* table : {&a, &b}) {
    for (float& value : table->values) value = f16_to_f32(f32_to_f16(value));
  }
  return linear(b, linear(a, x));
}

// Runs texts of one length.
inline PlantedPass planted_pass(const PlantedSource& source,
                                const std::vector<std::vector<uint32_t>>& texts) {
  const ModelConfig& c = source.config();
  const float shift = 0.1f;  // c of the profile
  const auto tokens = static_cast<uint32_t>(texts[0].size());
  Matrix x(static_cast<uint32_t>(texts.size()) * tokens, c.d_model);
  {
    const Matrix embed = tensor_of(source, "embed");
    const Matrix position = tensor_of(source, "position");
    for (uint32_t row = 0; row < x.rows; ++row) {
      const uint32_t id = texts[row / tokens][row % tokens];
      for (uint32_t i = 0; i < x.cols; ++i)
        x.at(row, i) = embed.at(id, i) + position.at(row % tokens + c.position_offset, i);
    }
  }
  const auto add = [&](const Matrix& delta) {
    for (size_t i = 0; i < x.values.size(); ++i) x.values[i] += delta.values[i];
  };
  PlantedPass pass;
  for (uint32_t layer = 0; layer < c.n_layers; ++layer) {
    const std::string prefix = "layers." + std::to_string(layer) + ".";
    const auto tensor = [&](const char* name) { return tensor_of(source, prefix + name); };
    const Matrix in = layer_norm(x, c.norm_eps, shift);
    const Matrix q = linear(tensor("q"), in), k = linear(tensor("k"), in), v = linear(tensor("v"), in);
    add(linear(tensor("o"), attend(q, k, v, c.head_dim, tokens)));

    const Matrix normed = layer_norm(x, c.norm_eps, shift);
    const Matrix scores = predictor_scores(source, layer, normed);
    Matrix hidden = linear(tensor("up"), normed);
    const Matrix up_bias = tensor("up.bias");
    LayerSets& sets = pass.layers.emplace_back(LayerSets{normed, {}, {}});
    for (uint32_t row = 0; row < hidden.rows; ++row) {
      std::vector<bool>& active = sets.active.emplace_back(c.d_ff);
      std::vector<bool>& predicted = sets.predicted.emplace_back(c.d_ff);
      for (uint32_t i = 0; i < c.d_ff; ++i) {
        float& value = hidden.at(row, i);
        value += up_bias.at(0, i);
        active[i] = value > 0;
        predicted[i] = scores.at(row, i) > 0;
        if (value < 0) value = 0;
      }
    }
    Matrix delta = linear(tensor("down"), hidden);
    const Matrix down_bias = tensor("down.bias");
    for (uint32_t row = 0; row < delta.rows; ++row) {
      for (uint32_t i = 0; i < delta.cols; ++i) delta.at(row, i) += down_bias.at(0, i);
    }
    add(delta);
  }
  pass.logits = linear(tensor_of(source, "head"), layer_norm(x, c.norm_eps, 0));
  return pass;
}

}  // namespace tierd
