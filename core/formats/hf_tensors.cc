#include "core/formats/hf_tensors.h"

#include <array>
#include <memory>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/base/log.h"
#include "core/formats/hf_families.h"
#include "core/formats/hf_names.h"
#include "core/formats/stored_form.h"

namespace tierd {
namespace {

constexpr std::string_view kCodes = ".blocks", kScales = ".scales", kBias = ".bias";
constexpr std::string_view kGateUp = "experts.gate+up", kDown = "experts.down";

// Replaces a part of a tensor's name.
std::string renamed(std::string name, std::string_view from, std::string_view to) {
  const size_t at = name.find(from);
  return name.replace(at, from.size(), to);
}

std::string layer_prefix(const std::string& ours) {
  return ours.substr(0, ours.find("experts."));
}

Error wrong_shape(const std::string& origin, const std::vector<uint64_t>& found,
                  std::initializer_list<uint64_t> expected) {
  return {Code::corrupt, origin,
          fmt::format("shape [{}], the configuration requires [{}]", fmt::join(found, ", "),
                      fmt::join(expected, ", "))};
}

}  // namespace

bool HfTensors::is_left_out(const std::string& theirs) const {
  if (theirs.ends_with(".rotary_emb.inv_freq")) return true;
  for (const char* of_images : {"vision_tower.", "vision_model.", "multi_modal_projector."}) {
    if (theirs.starts_with(of_images) || theirs.starts_with(std::string("model.") + of_images)) return true;
  }
  const HfFamily* const family = find_hf_family(parts_.config.architecture);
  const auto layer = hf_layer(theirs);
  if (!family->predicts_further || !layer || *layer < parts_.config.n_layers) return false;
  say_once(fmt::format("{}: layers from {} on predict further tokens and are not used", parts_.path,
                       parts_.config.n_layers));
  return true;
}

Status HfTensors::add(const SafetensorsTensor& tensor, const File& file) {
  if (is_left_out(tensor.name)) return {};
  const std::string origin = fmt::format("{}: tensor \"{}\"", file.path(), tensor.name);
  const std::string ours = hf_our_name(tensor.name, parts_.config);
  if (tensor.bytes != 0) {
    const auto index = static_cast<uint32_t>(parts_.files.size());
    if (ours.ends_with(kCodes)) {
      codes_[ours] = {tensor, origin, index};
      return {};
    }
    if (ours.ends_with(kScales)) {
      scales_[renamed(ours, kScales, kCodes)] = {tensor, origin, index};
      return {};
    }
    if (ours.ends_with(kGateUp) || ours.ends_with(kDown)) return add_experts(tensor, ours, origin);
  }
  TIERD_ASSIGN(TensorInfo info, as_tensor(tensor, origin));
  if (info.bytes() != 0) {
    if (ours.ends_with(".qkv") || ours.ends_with(".qkv.bias")) return add_grouped_qkv(info, origin);
    if (ours.ends_with("experts.gate+up.bias")) return add_expert_biases(info, origin);
    if (ours.find('+') != std::string::npos) return add_stacked(info, origin);
  }
  parts_.tensors.push_back(std::move(info));
  return {};
}

Result<TensorInfo> HfTensors::as_tensor(const SafetensorsTensor& tensor, const std::string& origin) const {
  TensorInfo info;
  info.name = hf_our_name(tensor.name, parts_.config);
  info.theirs = tensor.name;
  info.file = static_cast<uint32_t>(parts_.files.size());
  info.offset = tensor.offset;
  if (tensor.bytes == 0) return info;
  const auto encoding = encoding_of_dtype(tensor.dtype);
  if (!encoding) {
    return Error{Code::unsupported, origin,
                 fmt::format("dtype {}, supported are F32, F16 and BF16", tensor.dtype)};
  }
  if (tensor.shape.empty() || tensor.shape.size() > 2)
    return Error{Code::corrupt, origin, fmt::format("{} dimensions, expected 1 or 2", tensor.shape.size())};
  info.encoding = *encoding;
  info.rows = tensor.shape.size() == 2 ? tensor.shape[0] : 1;
  info.cols = tensor.shape.back();
  const float offset = find_hf_family(parts_.config.architecture)->norm_offset;
  if (offset != 0 && info.rows == 1 && info.name.ends_with("norm"))
    info.form = std::make_shared<WithSum>(std::exchange(info.encoding, Encoding::f32), offset);
  return info;
}

// Splits q, k and v whose rows are grouped by key and value head: the query heads that share it, then k, then
// v, each head_dim rows.
Status HfTensors::add_grouped_qkv(const TensorInfo& fused, const std::string& origin) {
  const ModelConfig& config = parts_.config;
  const bool bias = fused.name.ends_with(kBias);
  const uint64_t rows = config.q_dim() + 2ull * config.kv_dim();
  if (const uint64_t found = bias ? fused.cols : fused.rows; found != rows) {
    return Error{Code::corrupt, origin,
                 fmt::format("{} rows, expected {}: q, k and v together by the configuration", found, rows)};
  }
  const uint64_t head_bytes = fused.bytes() / rows * config.head_dim;
  const uint32_t queries = config.n_heads / config.n_kv_heads;
  uint64_t head = 0;  // head within its group
  for (const auto& [name, heads] : {std::pair{"q", queries}, std::pair{"k", 1u}, std::pair{"v", 1u}}) {
    TensorInfo part = fused;
    part.name = renamed(fused.name, "qkv", name);
    (bias ? part.cols : part.rows) = uint64_t{config.n_kv_heads} * heads * config.head_dim;
    part.offset += head * head_bytes;
    part.form = std::make_shared<Runs>(heads * head_bytes, (queries + 2) * head_bytes);
    parts_.tensors.push_back(std::move(part));
    head += heads;
  }
  return {};
}

// Splits a tensor whose parts follow one another: q, k and v, or gate and up.
Status HfTensors::add_stacked(const TensorInfo& fused, const std::string& origin) {
  const ModelConfig& config = parts_.config;
  const bool is_qkv = fused.name.find("q+k+v") != std::string::npos;
  const bool bias = fused.name.ends_with(kBias);
  using Parts = std::vector<std::pair<const char*, uint64_t>>;
  const Parts parts = is_qkv ? Parts{{"q", config.q_dim()}, {"k", config.kv_dim()}, {"v", config.kv_dim()}}
                             : Parts{{"gate", config.d_ff}, {"up", config.d_ff}};
  uint64_t rows = 0;
  for (const auto& part : parts) rows += part.second;
  if (const uint64_t found = bias ? fused.cols : fused.rows; found != rows) {
    return Error{Code::corrupt, origin,
                 fmt::format("{} rows, expected {}: {} together by the configuration", found, rows,
                             is_qkv ? "q, k and v" : "gate and up")};
  }
  uint64_t offset = fused.offset;
  for (const auto& [name, count] : parts) {
    TensorInfo part = fused;
    part.name = renamed(fused.name, is_qkv ? "q+k+v" : "gate+up", name);
    (bias ? part.cols : part.rows) = count;
    part.offset = offset;
    offset += part.bytes();
    parts_.tensors.push_back(std::move(part));
  }
  return {};
}

void HfTensors::add_expert(const std::string& layer, uint32_t expert, const char* op, TensorInfo info) {
  info.name = fmt::format("{}experts.{}.{}", layer, expert, op);
  parts_.tensors.push_back(std::move(info));
}

// Splits the matrices of all experts, [experts x in x out]: in columns, and those of gate and up in turn.
Status HfTensors::add_experts(const SafetensorsTensor& tensor, const std::string& ours,
                              const std::string& origin) {
  const ModelConfig& config = parts_.config;
  const auto encoding = encoding_of_dtype(tensor.dtype);
  if (!encoding) {
    return Error{Code::unsupported, origin,
                 fmt::format("dtype {}, supported are F32, F16, BF16 and MXFP4", tensor.dtype)};
  }
  const bool down = ours.ends_with(kDown);
  const uint64_t in = down ? config.d_ff : config.d_model, out = down ? config.d_model : 2ull * config.d_ff;
  if (tensor.shape != std::vector<uint64_t>{config.n_experts, in, out})
    return wrong_shape(origin, tensor.shape, {config.n_experts, in, out});
  TensorInfo info;
  info.theirs = tensor.name;
  info.encoding = *encoding;
  info.cols = in;
  info.file = static_cast<uint32_t>(parts_.files.size());
  for (uint32_t expert = 0; expert < config.n_experts; ++expert) {
    info.offset = tensor.offset + expert * encoded_bytes(*encoding, in * out);
    if (down) {
      info.rows = out;
      info.form = std::make_shared<Transposed>(out, 0, 1);
      add_expert(layer_prefix(ours), expert, "down", info);
      continue;
    }
    info.rows = config.d_ff;
    info.form = std::make_shared<Transposed>(out, 0, 2);
    add_expert(layer_prefix(ours), expert, "gate", info);
    info.form = std::make_shared<Transposed>(out, 1, 2);
    add_expert(layer_prefix(ours), expert, "up", info);
  }
  return {};
}

// Splits the biases of all experts, those of gate and up in turn.
Status HfTensors::add_expert_biases(const TensorInfo& fused, const std::string& origin) {
  const ModelConfig& config = parts_.config;
  if (fused.rows != config.n_experts || fused.cols != 2ull * config.d_ff)
    return wrong_shape(origin, {fused.rows, fused.cols}, {config.n_experts, 2ull * config.d_ff});
  const uint64_t value = encoded_bytes(fused.encoding, 1);
  for (const auto& [op, first] : {std::pair{"gate", 0u}, std::pair{"up", 1u}}) {
    TensorInfo part = fused;
    part.name = renamed(fused.name, "gate+up", op);
    part.cols = config.d_ff;
    part.offset += first * value;
    part.form = std::make_shared<Runs>(value, 2 * value);
    parts_.tensors.push_back(std::move(part));
  }
  return {};
}

Status HfTensors::finish() {
  for (const auto& [ours, codes] : codes_) {
    const auto scales = scales_.find(ours);
    if (scales == scales_.end())
      return Error{Code::corrupt, codes.origin, "the tensor with its scales is missing"};
    TIERD_TRY(add_mxfp4(ours, codes, scales->second));
  }
  for (const auto& [ours, scales] : scales_) {
    if (!codes_.contains(ours))
      return Error{Code::corrupt, scales.origin, "the tensor with its codes is missing"};
  }
  return {};
}

// Splits the codes, [experts x out x in / 32 x 16 bytes], and scales, [experts x out x in / 32], of all
// experts, whose rows of gate and up are in turn.
Status HfTensors::add_mxfp4(const std::string& ours, const Half& codes, const Half& scales) {
  constexpr uint64_t kValues = 32, kBytes = 16;
  const ModelConfig& config = parts_.config;
  const bool down = ours.ends_with("down.blocks");
  const uint64_t in = down ? config.d_ff : config.d_model, out = down ? config.d_model : 2ull * config.d_ff;
  const uint64_t blocks = in / kValues;
  if (codes.tensor.dtype != "U8" ||
      codes.tensor.shape != std::vector<uint64_t>{config.n_experts, out, blocks, kBytes})
    return wrong_shape(codes.origin, codes.tensor.shape, {config.n_experts, out, blocks, kBytes});
  if (scales.tensor.dtype != "U8" ||
      scales.tensor.shape != std::vector<uint64_t>{config.n_experts, out, blocks})
    return wrong_shape(scales.origin, scales.tensor.shape, {config.n_experts, out, blocks});
  TensorInfo info;
  info.theirs = codes.tensor.name;
  info.encoding = Encoding::mxfp4;
  info.rows = down ? out : config.d_ff;
  info.cols = in;
  info.file = codes.file;
  for (uint32_t expert = 0; expert < config.n_experts; ++expert) {
    info.offset = codes.tensor.offset + expert * out * blocks * kBytes;
    const ApartMxfp4::Scales at = {scales.file, scales.tensor.offset + expert * out * blocks};
    const auto add = [&](const char* op, uint64_t first, uint64_t step) {
      info.form = std::make_shared<ApartMxfp4>(at, first, step);
      add_expert(layer_prefix(ours), expert, op, info);
    };
    if (down) {
      add("down", 0, 1);
      continue;
    }
    add("gate", 0, 2);
    add("up", 1, 2);
  }
  return {};
}

}  // namespace tierd
