// GGUF's names of the tensors of the architectures that tierd reads from it and writes to it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tierd {

inline constexpr uint32_t kGgufMagic = 0x46554747;  // "GGUF"
// The divisors of the rotary frequencies (f32): a tensor in GGUF, Rope::divisors in tierd.
inline constexpr std::string_view kGgufRopeDivisors = "rope_freqs.weight";
inline constexpr std::string_view kGgufShortDivisors = "rope_factors_short.weight";  // of longrope
inline constexpr std::string_view kGgufLongDivisors = "rope_factors_long.weight";

// "layers.3.q.bias" -> "blk.3.attn_q.bias"; nothing for a tensor that GGUF does not have.
std::optional<std::string> gguf_name(std::string_view ours);

// The matrices of all experts of a layer, one after the other: "blk.3.ffn_up_exps.weight" ->
// "layers.3.experts.*.up", with a star for the expert's number.
std::optional<std::string> gguf_experts_part(std::string_view theirs);
// The reverse, for one expert: "layers.3.experts.5.up" -> "blk.3.ffn_up_exps.weight".
std::optional<std::string> gguf_experts_name(std::string_view ours);

}  // namespace tierd
