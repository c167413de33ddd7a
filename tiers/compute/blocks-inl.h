// Decoded weights of block encodings (core/model/layout/block_layout.h), and their products with few tokens;
// all but those of q8_0 and q4_0, which matmul-inl.h multiplies without their scales. See kernels.h for the
// order of reduction. Included once per target by simd.cc, through matmul-inl.h.
//
// Four runs of 32 columns are computed side by side, as four chains: half a super-block, or four blocks.
#if defined(TIERD_COMPUTE_BLOCKS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef TIERD_COMPUTE_BLOCKS_INL_H
#undef TIERD_COMPUTE_BLOCKS_INL_H
#else
#define TIERD_COMPUTE_BLOCKS_INL_H
#endif

#include <algorithm>
#include <array>

#include "core/model/layout/block_layout.h"
#include "core/model/layout/encoding.h"
#include "core/model/layout/row_group.h"
#include "tiers/compute/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tierd {
namespace HWY_NAMESPACE {

inline constexpr uint32_t kPrefetchBytes = 4096;  // distance ahead of weights that stream from memory
inline constexpr uint32_t kRunsAtOnce = 4;
inline constexpr uint32_t kChunk = 64;  // bytes: a word of each of 16 rows
using Word = hn::Vec<U32>;

template <Encoding E>
constexpr uint32_t kGroupBlock = kGroupRows* block_bytes(E);  // bytes of a block of 16 rows

// Part i of the words `word` of 16 rows.
template <Encoding E>
HWY_INLINE Word words16(const uint8_t* block, uint32_t word, uint32_t i) {
  if (word == kSecondFactor) {
    const auto* factor = reinterpret_cast<const uint16_t*>(block) + kGroupRows + i * kVector;
    return hn::PromoteTo(U32(), hn::LoadU(U16(), factor));
  }
  const uint8_t* p = block + kGroupRows * factor_bytes(E) + word * kChunk;
  return hn::LoadU(U32(), reinterpret_cast<const uint32_t*>(p) + i * kVector);
}

HWY_INLINE Word shift_right(Word word, uint32_t bits) {
  return bits == 0 ? word : hn::Shr(word, hn::Set(U32(), bits));
}
HWY_INLINE Word masked(Word word, uint32_t mask) {
  return hn::And(word, hn::Set(U32(), mask));
}

// Whether a permutation looks the values of codes up, by their low bits alone.
template <Encoding E>
constexpr bool kPermuted = HWY_TARGET == HWY_AVX3&& code_width(E) <= 5;

// Returns the codes of four columns of a run, a byte each. Bits above those of a code may be anything if
// permutations ignore them.
template <Encoding E>
HWY_INLINE Word codes(const uint8_t* block, uint32_t run, uint32_t four, uint32_t i) {
  constexpr uint32_t kLow = ((1u << low_width(E)) - 1) * 0x01010101u;
  constexpr uint32_t kHigh = ((1u << high_width(E)) - 1) * 0x01010101u;
  const Bits low_at = low_bits(E, run, four);
  const Word low = shift_right(words16<E>(block, low_at.word, i), low_at.shift);
  if constexpr (high_width(E) == 0) {
    return kPermuted<E> ? low : masked(low, kLow);
  } else {
    const Bits high_at = high_bits(E, run, four);
    const Word high = masked(shift_right(words16<E>(block, high_at.word, i), high_at.shift), kHigh);
    return hn::Or(masked(low, kLow), hn::ShiftLeft<low_width(E)>(high));
  }
}

// The values of codes: entry - offset.
template <Encoding E>
constexpr auto kValues = [] {
  std::array<int8_t, 16> values{};
  for (size_t code = 0; code < values.size(); ++code)
    values[code] = static_cast<int8_t>(code_entries(E)[code] - code_offset(E));
  return values;
}();

// Returns the signed byte number `byte` of each lane as a float.
HWY_INLINE V byte_value(Word word, uint32_t byte) {
  const Word top = byte == 3 ? word : hn::Shl(word, hn::Set(U32(), 24 - 8 * byte));
  return hn::ConvertTo(F32(), hn::ShiftRight<24>(hn::BitCast(I32(), top)));
}

#if HWY_TARGET == HWY_AVX3
template <Encoding E>
HWY_INLINE V permuted_value(Word code) {
  alignas(64) static constexpr auto kTable = [] {
    std::array<float, 32> values{};
    for (uint32_t code = 0; code < values.size(); ++code) {
      values[code] = code_width(E) <= 4 ? static_cast<float>(kValues<E>[code % 16])
                                        : static_cast<float>(code) - static_cast<float>(code_offset(E));
    }
    return values;
  }();
  if constexpr (code_width(E) <= 4) {
    return V{_mm512_permutexvar_ps(code.raw, _mm512_load_ps(kTable.data()))};
  } else {
    return V{
        _mm512_permutex2var_ps(_mm512_load_ps(kTable.data()), code.raw, _mm512_load_ps(kTable.data() + 16))};
  }
}
#endif

// The values of four columns, without step and minimum.
template <Encoding E>
HWY_INLINE void values_of(Word codes, V (&out)[4]) {
#if HWY_TARGET == HWY_AVX3
  if constexpr (kPermuted<E>) {
#pragma GCC unroll 4
    for (uint32_t k = 0; k < 4; ++k) out[k] = permuted_value<E>(shift_right(codes, 8 * k));
    return;
  }
#endif
  Word word = codes;
  if constexpr (code_offset(E) != 0 && code_width(E) <= 4) {
#if HWY_TARGET == HWY_AVX2
    alignas(16) static constexpr auto kTable = kValues<E>;
    const __m128i table = _mm_load_si128(reinterpret_cast<const __m128i*>(kTable.data()));
    word = Word{_mm256_shuffle_epi8(_mm256_broadcastsi128_si256(table), codes.raw)};
#endif
  } else if constexpr (code_offset(E) != 0) {
    // Subtracts from each byte of less than 128: the top bit, set meanwhile, prevents a borrow.
    const Word guard = hn::Set(U32(), 0x80808080u);
    const Word offset = hn::Set(U32(), static_cast<uint32_t>(code_offset(E)) * 0x01010101u);
    word = hn::Xor(hn::Sub(hn::Or(codes, guard), offset), guard);
  }
#pragma GCC unroll 4
  for (uint32_t k = 0; k < 4; ++k) out[k] = byte_value(word, k);
}

// Part i of an integer of 16 rows, as floats.
template <Encoding E>
HWY_INLINE V integers16(const uint8_t* block, const ScaleBits& at, uint32_t i) {
  Word value = masked(shift_right(words16<E>(block, at.low.word, i), at.low.shift), (1u << at.low_width) - 1);
  if (at.high_width != 0) {
    const Word high = shift_right(words16<E>(block, at.high.word, i), at.high.shift);
    value = hn::Or(value, hn::Shl(masked(high, (1u << at.high_width) - 1), hn::Set(U32(), at.low_width)));
  }
  if (at.flip != 0) value = hn::Xor(value, hn::Set(U32(), at.flip));
  return hn::ConvertTo(F32(), hn::Sub(hn::BitCast(I32(), value), hn::Set(I32(), at.offset)));
}

// Part i of the first factor of 16 rows, or of the second.
template <Encoding E>
HWY_INLINE V factors16(const uint8_t* block, uint32_t number, uint32_t i) {
  if constexpr (E == Encoding::mxfp4) {
    const hn::Rebind<uint8_t, F32> u8;
    const auto exponent = hn::PromoteTo(I32(), hn::LoadU(u8, block + i * kVector));
    // 2^(exponent - 128), of which the least two are subnormal.
    const auto normal = hn::ShiftLeft<23>(hn::Sub(exponent, hn::Set(I32(), 1)));
    const auto subnormal = hn::Shl(hn::Set(I32(), 0x00200000), exponent);
    return hn::BitCast(F32(), hn::IfThenElse(hn::Lt(exponent, hn::Set(I32(), 2)), subnormal, normal));
  } else {
    return to_f32(reinterpret_cast<const uint16_t*>(block) + number * kGroupRows + i * kVector);
  }
}

// The step of a run's codes and the value that is then subtracted, for each row. Values of `part`: the first
// or second 16, if those have steps of their own.
struct Steps {
  Lanes16 step;
  Lanes16 min;
};
template <Encoding E>
HWY_INLINE Steps steps_of(const uint8_t* block, uint32_t run, uint32_t part) {
  Steps r;
  const uint32_t number = run * (kQuantBlock / scaled_values(E)) + part;
#pragma GCC unroll 2
  for (uint32_t i = 0; i < kParts; ++i) {
    r.step.part[i] = factors16<E>(block, 0, i);
    if constexpr (has_scales(E))
      r.step.part[i] = hn::Mul(r.step.part[i], integers16<E>(block, scale_bits(E, number), i));
    if constexpr (has_min(E)) {
      const V second = factors16<E>(block, 1, i);
      if constexpr (has_scales(E)) {
        r.min.part[i] = hn::Mul(second, integers16<E>(block, min_bits(E, number), i));
      } else {
        r.min.part[i] = hn::Neg(second);
      }
    }
  }
  return r;
}

// Decodes four columns of a run.
template <Encoding E>
HWY_INLINE void four_of_run(const uint8_t* block, uint32_t run, uint32_t four, const Steps& steps,
                            Lanes16 (&out)[4]) {
#pragma GCC unroll 2
  for (uint32_t i = 0; i < kParts; ++i) {
    V values[4];
    values_of<E>(codes<E>(block, run, four, i), values);
#pragma GCC unroll 4
    for (uint32_t k = 0; k < 4; ++k) {
      if constexpr (has_min(E)) {
        out[k].part[i] = hn::MulSub(values[k], steps.step.part[i], steps.min.part[i]);
      } else {
        out[k].part[i] = hn::Mul(values[k], steps.step.part[i]);
      }
    }
  }
}

// Decodes a run to f32, [column][16].
template <Encoding E>
void decode_run(const uint8_t* block, uint32_t run, float* out) {
  for (uint32_t c = 0; c < kQuantBlock; c += scaled_values(E)) {
    const Steps steps = steps_of<E>(block, run, c / scaled_values(E));
    for (uint32_t four = c / 4; four < (c + scaled_values(E)) / 4; ++four) {
      Lanes16 w[4];
      four_of_run<E>(block, run, four, steps, w);
      for (uint32_t k = 0; k < 4; ++k, out += kLanes16) store16(w[k], out);
    }
  }
}

// Decodes columns [col, col + cols) of a group, whole runs; `blocks` is the block that contains `col`.
template <Encoding E>
void decode_columns(const uint8_t* blocks, uint32_t col, uint32_t cols, float* out) {
  uint32_t run = col % block_values(E) / kQuantBlock;
  for (uint32_t c = 0; c < cols; c += kQuantBlock, ++run, out += kQuantBlock * kLanes16)
    decode_run<E>(blocks + run / runs_of(E) * kGroupBlock<E>, run % runs_of(E), out);
}

// sums[t] += R runs of one group by N tokens: parallel chains of 32 multiply-adds, added in order. `first`:
// the number of the first in its block.
template <Encoding E, int N, uint32_t R>
HWY_INLINE void add_runs(const uint8_t* blocks, uint32_t first, const float* x, size_t ldx,
                         Lanes16 (&sums)[N]) {
  constexpr uint32_t kScaledFours = scaled_values(E) / 4;
  Lanes16 p[R][N];
#pragma GCC unroll 4
  for (uint32_t r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (int t = 0; t < N; ++t) p[r][t] = set16(0);
  }
#pragma GCC unroll 2
  for (uint32_t part = 0; part < kFours / kScaledFours; ++part) {
    Steps steps[R];
#pragma GCC unroll 4
    for (uint32_t r = 0; r < R; ++r) {
      const uint32_t run = first + r;
      steps[r] = steps_of<E>(blocks + run / runs_of(E) * kGroupBlock<E>, run % runs_of(E), part);
    }
    for (uint32_t four = part * kScaledFours; four < (part + 1) * kScaledFours; ++four) {
#pragma GCC unroll 4
      for (uint32_t r = 0; r < R; ++r) {
        const uint32_t run = first + r;
        Lanes16 w[4];
        four_of_run<E>(blocks + run / runs_of(E) * kGroupBlock<E>, run % runs_of(E), four, steps[r], w);
#pragma GCC unroll 4
        for (uint32_t k = 0; k < 4; ++k) {
#pragma GCC unroll 4
          for (int t = 0; t < N; ++t)
            p[r][t] = fma16(w[k], set16(x[t * ldx + r * kQuantBlock + four * 4 + k]), p[r][t]);
        }
      }
    }
  }
#pragma GCC unroll 4
  for (uint32_t r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (int t = 0; t < N; ++t) sums[t] = add16(sums[t], p[r][t]);
  }
}

// Multiplies one group by N tokens, with weights straight from memory.
template <Encoding E, int N>
void multiply_few_of_values(const uint8_t* block, uint32_t cols, const float* x, size_t ldx, float* y,
                            size_t ldy) {
  constexpr uint32_t kBlocksAtOnce = std::max(1u, kRunsAtOnce / runs_of(E));
  constexpr uint32_t kColumnsAtOnce = kBlocksAtOnce * block_values(E);
  constexpr uint32_t kBytesAtOnce = kBlocksAtOnce * kGroupBlock<E>;
  Lanes16 sums[N];
#pragma GCC unroll 4
  for (int t = 0; t < N; ++t) sums[t] = set16(0);
  uint32_t c = 0;
  for (; c + kColumnsAtOnce <= cols; c += kColumnsAtOnce, block += kBytesAtOnce) {
    for (uint32_t i = 0; i < kBytesAtOnce; i += kChunk) __builtin_prefetch(block + kPrefetchBytes + i);
    add_runs<E, N, kRunsAtOnce>(block, 0, x + c, ldx, sums);
    if constexpr (runs_of(E) > kRunsAtOnce)
      add_runs<E, N, kRunsAtOnce>(block, kRunsAtOnce, x + c + kRunsAtOnce * kQuantBlock, ldx, sums);
  }
  if constexpr (kBlocksAtOnce > 1) {
    for (; c < cols; c += kQuantBlock, block += kGroupBlock<E>) add_runs<E, N, 1>(block, 0, x + c, ldx, sums);
  }
  for (int t = 0; t < N; ++t) store16(sums[t], y + t * ldy);
}

}  // namespace HWY_NAMESPACE
}  // namespace tierd
HWY_AFTER_NAMESPACE();

#endif
