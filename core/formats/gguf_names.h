// What GGUF calls the tensors of the architectures that it is read and written for.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tierd {

inline constexpr uint32_t kGgufMagic = 0x46554747;  // "GGUF"
// The divisors of the rotary frequencies (Rope::divisors), f32: configuration to us, a tensor to them.
inline constexpr std::string_view kGgufRopeDivisors = "rope_freqs.weight";

// "layers.3.q.bias" -> "blk.3.attn_q.bias"; nothing for a tensor that they do not have.
std::optional<std::string> gguf_name(std::string_view ours);

// A matrix of all experts of a layer, one after the other: "blk.3.ffn_up_exps.weight" ->
// "layers.3.experts.*.up", with a star for the expert's number.
std::optional<std::string> gguf_experts_part(std::string_view theirs);
// The way back, from one expert's: "layers.3.experts.5.up" -> "blk.3.ffn_up_exps.weight".
std::optional<std::string> gguf_experts_name(std::string_view ours);

}  // namespace tierd
