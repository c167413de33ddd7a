#include "tiers/dram/segments.h"

#include <algorithm>
#include <cmath>

#include "core/base/check.h"
#include "tiers/dram/choose_experts.h"
#include "tiers/dram/work_cost.h"

namespace tierd {

Segments::Segments(PlannedValues& values, KvCache kv)
    : values_(values), kv_(std::move(kv)), scores_(team_.workers()) {
  for (std::vector<float>& scores : scores_) scores.resize(plan_.context);
}

void Segments::run(const Program& program, std::span<const RowInfo> rows) {
  for (const Step& step : program) run_step(step, rows);
}

void Segments::run_step(const Step& step, std::span<const RowInfo> rows) {
  if (step.kind == StepKind::attend) return attend(step, rows);
  if (step.kind == StepKind::route) return route(step, static_cast<uint32_t>(rows.size()));
  if (step.kind == StepKind::rope) prepare_rotation(rows);
  team_.run(rows.size(), 1, rows.size() * step.width / kFloatsPerNs,
            [&](uint64_t begin, uint64_t end, uint32_t) {
              for (uint64_t i = begin; i < end; ++i) run_row(step, rows[i], static_cast<uint32_t>(i));
            });
}

void Segments::run_row(const Step& step, const RowInfo& info, uint32_t i) {
  float* out = step.out == kNoBuffer ? nullptr : values_.row(step.out, i);
  const float* in = step.in == kNoBuffer ? nullptr : values_.row(step.in, i);
  switch (step.kind) {
    case StepKind::rms_norm:
      return kernels_.rms_norm(values_.row(step.in, info.row), tensor(step.weight), step.eps, step.width,
                               out);
    case StepKind::layer_norm:
      return kernels_.layer_norm(values_.row(step.in, info.row), tensor(step.weight), tensor(step.bias),
                                 step.eps, step.width, out);
    case StepKind::pick:
      return pick(step, info, out);
    case StepKind::add_chosen:
      return add_chosen(step, info, in);
    case StepKind::add_bias:
      return kernels_.add(out + step.column, tensor(step.weight) + step.offset, step.width);
    case StepKind::add_position:
      return kernels_.add(out, tensor(step.weight) + uint64_t{info.position + step.offset} * step.width,
                          step.width);
    case StepKind::add:
      return kernels_.add(out, in, step.width);
    case StepKind::scale:
      for (float& value : std::span(out + step.column, step.width)) value *= step.factor;
      return;
    case StepKind::cap:
      for (float& value : std::span(out + step.column, step.width))
        value = step.threshold * std::tanh(value / step.threshold);
      return;
    case StepKind::gate:
      return gate(step, in, out);
    case StepKind::temper: {
      const float growth =
          1 + step.factor *
                  std::log(1 + std::floor(static_cast<float>(info.position) / static_cast<float>(step.span)));
      for (float& value : std::span(out + step.column, step.width)) value *= growth;
      return;
    }
    case StepKind::head_norm:
      for (uint32_t at = 0; at < step.width; at += step.head) {
        float* head = out + step.column + at;
        kernels_.layer_norm(head, tensor(step.weight), tensor(step.bias), step.eps, step.head, head);
      }
      return;
    case StepKind::head_rms_norm:
      for (uint32_t at = 0; at < step.width; at += step.head) {
        float* head = out + step.column + at;
        kernels_.rms_norm(head, tensor(step.weight), step.eps, step.head, head);
      }
      return;
    case StepKind::clip:
      for (float& value : std::span(out + step.column, step.width))
        value = std::clamp(value, -step.threshold, step.threshold);
      return;
    case StepKind::rope:
      return rotate(step, i);
    case StepKind::store_kv:
      return kv_.store(kernels_, step.layer, info.sequence, info.position, in + step.column,
                       in + step.offset);
    case StepKind::reorder: {
      const float* const order = tensor(step.weight);
      for (uint32_t c = 0; c < step.width; ++c) out[c] = in[static_cast<uint32_t>(order[c])];
      return;
    }
    case StepKind::activate:
      return kernels_.activate(step.activation, step.threshold, in, nullptr, step.width, out);
    case StepKind::activate_mul:
      return kernels_.activate(step.activation, step.threshold, in, in + step.width, step.width, out);
    case StepKind::attend:
    case StepKind::route:
      break;
  }
  TIERD_CHECK(false);
}

void Segments::gate(const Step& step, const float* in, float* out) {
  float product = 0;
  const auto* const weight = reinterpret_cast<const std::byte*>(tensor(step.weight));
  kernels_.dots(Encoding::f32, {&weight, 1}, step.width, in, values_.strides[step.in], 1, &product, 1);
  const float factor = 1 / (1 + std::exp(-product));
  for (float& value : std::span(out, step.width)) value *= factor;
}

void Segments::attend(const Step& step, std::span<const RowInfo> rows) {
  const AttentionShape& shape = plan_.attention;
  const float* const sinks = tensor(step.weight);
  uint64_t positions = 0;
  for (const RowInfo& info : rows) positions += info.position + 1;
  team_.run(rows.size() * shape.n_heads, 1, positions * shape.n_heads * shape.head_dim / kFloatsPerNs,
            [&](uint64_t begin, uint64_t end, uint32_t worker) {
              for (uint64_t task = begin; task < end; ++task) {
                const auto i = static_cast<uint32_t>(task / shape.n_heads);
                const auto head = static_cast<uint32_t>(task % shape.n_heads);
                const uint64_t column = step.column + uint64_t{head} * shape.head_dim;
                ScoreShape score = {shape.scale, shape.cap};
                if (sinks != nullptr) score.sink = sinks[step.offset + head];
                kv_.attend(kernels_, step.layer, step.window, rows[i].sequence, rows[i].position, head, score,
                           values_.row(step.in, i) + column, scores_[worker].data(),
                           values_.row(step.out, i) + column);
              }
            });
}

// The angles of a batch are the same in all layers with the same frequencies, so they are computed once.
void Segments::prepare_rotation(std::span<const RowInfo> rows) {
  const auto same = [&] {
    if (rotation_positions_.size() != rows.size()) return false;
    for (size_t i = 0; i < rows.size(); ++i) {
      if (rotation_positions_[i] != rows[i].position) return false;
    }
    return true;
  };
  if (same()) return;
  rotation_positions_.clear();
  rotation_.clear();
  for (const RowInfo& info : rows) {
    rotation_positions_.push_back(info.position);
  }
  for (const std::vector<float>& frequencies : plan_.attention.frequencies) {
    for (const RowInfo& info : rows) {
      for (const float frequency : frequencies) {
        const float angle = static_cast<float>(info.position) * frequency;
        rotation_.push_back(plan_.attention.magnitude * std::cos(angle));
        rotation_.push_back(plan_.attention.magnitude * std::sin(angle));
      }
    }
  }
}

void Segments::rotate(const Step& step, uint32_t i) {
  const uint32_t half = plan_.attention.pairs();
  const bool interleaved = plan_.attention.rope == RopeStyle::interleaved;
  const float* angles = rotation_.data() + (step.turn * rotation_positions_.size() + i) * half * 2;
  float* heads = values_.row(step.out, i) + step.column;
  for (uint32_t head = 0; head < step.width / plan_.attention.head_dim; ++head) {
    float* v = heads + uint64_t{head} * plan_.attention.head_dim;
    for (uint32_t j = 0; j < half; ++j) {
      float& a = interleaved ? v[2 * j] : v[j];
      float& b = interleaved ? v[2 * j + 1] : v[j + half];
      const float cosine = angles[2 * j];
      const float sine = angles[2 * j + 1];
      const float rotated = a * cosine - b * sine;
      b = b * cosine + a * sine;
      a = rotated;
    }
  }
}

void Segments::route(const Step& step, uint32_t rows) {
  const uint32_t n_in = plan_.buffers[step.in].width;
  const float* weight = values_.tensors[step.weight];
  const uint64_t row_bytes = n_in * sizeof(float);
  experts_.resize(step.width);
  for (uint32_t e = 0; e < step.width; ++e)
    experts_[e] = reinterpret_cast<const std::byte*>(weight + uint64_t{e} * n_in);
  team_.run(step.width, std::max<uint64_t>(1, kGrainBytes / row_bytes), cost_of(step.width * row_bytes, rows),
            [&](uint64_t begin, uint64_t end, uint32_t) {
              kernels_.dots(Encoding::f32, std::span(experts_).subspan(begin, end - begin), n_in,
                            values_.row(step.in, 0), values_.strides[step.in], rows,
                            values_.row(step.out, 0) + begin, values_.strides[step.out]);
            });
  const float* const bias = tensor(step.bias);
  team_.run(rows, 1, uint64_t{rows} * step.width * step.routing.picks / kFloatsPerNs,
            [&](uint64_t begin, uint64_t end, uint32_t) {
              for (uint64_t i = begin; i < end; ++i) {
                if (bias != nullptr)
                  kernels_.add(values_.row(step.out, static_cast<uint32_t>(i)), bias, step.width);
                choose_experts({values_.row(step.out, static_cast<uint32_t>(i)), step.width}, step.routing,
                               tensor(step.routing.correction));
              }
            });
}

void Segments::pick(const Step& step, const RowInfo& info, float* out) {
  const float* const picked = values_.row(step.in, info.row);
  if (step.weight == kNoTensor) {
    std::copy_n(picked, step.width, out);
    return;
  }
  const float* const order = values_.tensors[step.weight];
  for (uint32_t c = 0; c < step.width; ++c) out[c] = picked[static_cast<uint32_t>(order[c])];
}

void Segments::add_chosen(const Step& step, const RowInfo& info, const float* given) {
  const auto* const column = reinterpret_cast<const std::byte*>(given);
  kernels_.add_weighted({Encoding::f32, step.width, {&column, 1}}, 0, step.width,
                        values_.row(step.choice, info.row) + step.column, 1, 1,
                        values_.row(step.out, info.row), values_.strides[step.out]);
}

}  // namespace tierd
