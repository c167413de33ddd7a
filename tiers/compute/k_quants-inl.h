// Decoded weights of K-quants, and their products with few tokens. See kernels.h for the order of reduction.
// Included once per target by simd.cc, through matmul-inl.h.
//
// A half of a super-block is four runs of 32 columns; a step is four columns of each run. In every K-quant
// the bits of a step have the same places in its chunks, which give one word a run: a byte a column.
#if defined(TIERD_COMPUTE_K_QUANTS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef TIERD_COMPUTE_K_QUANTS_INL_H
#undef TIERD_COMPUTE_K_QUANTS_INL_H
#else
#define TIERD_COMPUTE_K_QUANTS_INL_H
#endif

#include "core/model/layout/encoding.h"
#include "core/model/layout/row_group.h"
#include "tiers/compute/k_chunks.h"
#include "tiers/compute/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tierd {
namespace HWY_NAMESPACE {

inline constexpr uint32_t kPrefetchBytes = 4096;  // distance ahead of weights that stream from memory
inline constexpr uint32_t kHalfColumns = kSuperBlock / 2;
inline constexpr uint32_t kRuns = kHalfColumns / kQuantBlock;  // of a half
inline constexpr uint32_t kStepColumns = 4;
inline constexpr uint32_t kSteps = kQuantBlock / kStepColumns;
inline constexpr uint32_t kChunkBytes = 64;  // four bytes of each of 16 rows
using Word = hn::Vec<U32>;

// Part i of the 16 rows of a chunk.
template <Encoding E>
HWY_INLINE Word k_chunk(const uint8_t* super_block, uint32_t chunk, uint32_t i) {
  const uint8_t* p = super_block + KChunks<E>::kFirstChunk + chunk * kChunkBytes;
  return hn::LoadU(U32(), reinterpret_cast<const uint32_t*>(p) + i * kVector);
}
// Returns the bits of `mask` in each byte, from bit kShift on.
template <int kShift>
HWY_INLINE Word byte_bits(Word word, uint32_t mask) {
  return hn::And(hn::ShiftRight<kShift>(word), hn::Set(U32(), mask * 0x01010101u));
}
HWY_INLINE Word with_high(Word low, Word high) {
  return hn::Or(low, hn::ShiftLeft<4>(high));
}
// Returns the signed byte at kShift of each lane as a float.
template <int kShift>
HWY_INLINE V byte_value(Word word) {
  return hn::ConvertTo(F32(), hn::ShiftRight<24>(hn::BitCast(I32(), hn::ShiftLeft<24 - kShift>(word))));
}
HWY_INLINE V byte_value(Word word, uint32_t byte) {
  return hn::ConvertTo(F32(), hn::ShiftRight<24>(hn::BitCast(
                                  I32(), hn::ShiftLeftSame(word, 24 - 8 * static_cast<int>(byte)))));
}

// Computes the integers of a step, a word a run.
template <Encoding E>
HWY_INLINE void k_words(const uint8_t* super_block, uint32_t half, uint32_t step, uint32_t i,
                        Word (&out)[kRuns]) {
  using Chunks = KChunks<E>;
  const Word first = k_chunk<E>(super_block, Chunks::low(half * kRuns, step), i);
  const Word second = k_chunk<E>(super_block, Chunks::low(half * kRuns + (Chunks::kHasMin ? 2 : 1), step), i);
  if constexpr (E == Encoding::q6_k) {
    const Word high = k_chunk<E>(super_block, Chunks::high(half * kRuns, step), i);
    out[0] = with_high(byte_bits<0>(first, 15), byte_bits<0>(high, 3));
    out[1] = with_high(byte_bits<0>(second, 15), byte_bits<2>(high, 3));
    out[2] = with_high(byte_bits<4>(first, 15), byte_bits<4>(high, 3));
    out[3] = with_high(byte_bits<4>(second, 15), byte_bits<6>(high, 3));
    // Subtracts 32 from each byte, which is at most 63: the top bit, set meanwhile, prevents a borrow.
    const Word guard = hn::Set(U32(), 0x80808080u);
    for (Word& word : out) word = hn::Xor(hn::Sub(hn::Or(word, guard), hn::Set(U32(), 0x20202020u)), guard);
    return;
  }
  out[0] = byte_bits<0>(first, 15);
  out[1] = byte_bits<4>(first, 15);
  out[2] = byte_bits<0>(second, 15);
  out[3] = byte_bits<4>(second, 15);
  if constexpr (E == Encoding::q5_k) {
    Word high = k_chunk<E>(super_block, Chunks::high(half * kRuns, step), i);
    high = half == 0 ? high : hn::ShiftRight<4>(high);
    out[0] = with_high(out[0], byte_bits<0>(high, 1));
    out[1] = with_high(out[1], byte_bits<1>(high, 1));
    out[2] = with_high(out[2], byte_bits<2>(high, 1));
    out[3] = with_high(out[3], byte_bits<3>(high, 1));
  }
}

// The factor of a step's integers and the value that is then subtracted, for each row.
struct KScales {
  Lanes16 step[kRuns];
  Lanes16 min[kRuns];
};

// Returns the scales of the first (part 0) or last 16 columns of each run.
template <Encoding E>
HWY_INLINE KScales k_scales(const uint8_t* super_block, uint32_t half, uint32_t part) {
  using Chunks = KChunks<E>;
  const Lanes16 d = load16(reinterpret_cast<const uint16_t*>(super_block));
  KScales r;
#pragma GCC unroll 2
  for (uint32_t i = 0; i < kParts; ++i) {
    if constexpr (Chunks::kHasMin) {
      const Lanes16 dmin = load16(reinterpret_cast<const uint16_t*>(super_block) + kGroupRows);
      Word scales = k_chunk<E>(super_block, Chunks::kScales, i);
      Word mins = k_chunk<E>(super_block, Chunks::kScales + 1, i);
      if (half == 0) {
        scales = byte_bits<0>(scales, 63);
        mins = byte_bits<0>(mins, 63);
      } else {
        const Word low = k_chunk<E>(super_block, Chunks::kScales + 2, i);
        scales = with_high(byte_bits<0>(low, 15), byte_bits<6>(scales, 3));
        mins = with_high(byte_bits<4>(low, 15), byte_bits<6>(mins, 3));
      }
#pragma GCC unroll 4
      for (uint32_t run = 0; run < kRuns; ++run) {
        r.step[run].part[i] = hn::Mul(d.part[i], byte_value(scales, run));
        r.min[run].part[i] = hn::Mul(dmin.part[i], byte_value(mins, run));
      }
    } else {
      const Word first = k_chunk<E>(super_block, Chunks::kScales + half * 2, i);
      const Word second = k_chunk<E>(super_block, Chunks::kScales + half * 2 + 1, i);
      r.step[0].part[i] = hn::Mul(d.part[i], byte_value(first, part));
      r.step[1].part[i] = hn::Mul(d.part[i], byte_value(first, 2 + part));
      r.step[2].part[i] = hn::Mul(d.part[i], byte_value(second, part));
      r.step[3].part[i] = hn::Mul(d.part[i], byte_value(second, 2 + part));
    }
  }
  return r;
}

template <Encoding E>
HWY_INLINE V k_value(V q, V step, V min) {
  return KChunks<E>::kHasMin ? hn::MulSub(q, step, min) : hn::Mul(q, step);
}

// Decodes the four columns of a step, for each run.
template <Encoding E>
HWY_INLINE void k_columns(const uint8_t* super_block, uint32_t half, uint32_t step, const KScales& scales,
                          Lanes16 (&out)[kRuns][kStepColumns]) {
#pragma GCC unroll 2
  for (uint32_t i = 0; i < kParts; ++i) {
    Word words[kRuns];
    k_words<E>(super_block, half, step, i, words);
#pragma GCC unroll 4
    for (uint32_t run = 0; run < kRuns; ++run) {
      const V s = scales.step[run].part[i];
      const V m = scales.min[run].part[i];
      out[run][0].part[i] = k_value<E>(byte_value<0>(words[run]), s, m);
      out[run][1].part[i] = k_value<E>(byte_value<8>(words[run]), s, m);
      out[run][2].part[i] = k_value<E>(byte_value<16>(words[run]), s, m);
      out[run][3].part[i] = k_value<E>(byte_value<24>(words[run]), s, m);
    }
  }
}

// Decodes a half's columns to f32, [column][16].
template <Encoding E>
void decode_half(const uint8_t* super_block, uint32_t half, float* out) {
  for (uint32_t part = 0; part < 2; ++part) {
    const KScales scales = k_scales<E>(super_block, half, part);
    for (uint32_t step = part * kSteps / 2; step < (part + 1) * kSteps / 2; ++step) {
      Lanes16 w[kRuns][kStepColumns];
      k_columns<E>(super_block, half, step, scales, w);
      for (uint32_t run = 0; run < kRuns; ++run) {
        for (uint32_t k = 0; k < kStepColumns; ++k)
          store16(w[run][k], out + (run * kQuantBlock + step * kStepColumns + k) * kLanes16);
      }
    }
  }
}

// sums[t] += a half of one group by N tokens: four parallel chains of 32 multiply-adds, added in order.
template <Encoding E, int N>
HWY_INLINE void add_half(const uint8_t* super_block, uint32_t half, const float* x, size_t ldx,
                         Lanes16 (&sums)[N]) {
  Lanes16 p[kRuns][N];
#pragma GCC unroll 4
  for (uint32_t run = 0; run < kRuns; ++run) {
#pragma GCC unroll 4
    for (int t = 0; t < N; ++t) p[run][t] = set16(0);
  }
  for (uint32_t part = 0; part < 2; ++part) {
    const KScales scales = k_scales<E>(super_block, half, part);
    for (uint32_t step = part * kSteps / 2; step < (part + 1) * kSteps / 2; ++step) {
      Lanes16 w[kRuns][kStepColumns];
      k_columns<E>(super_block, half, step, scales, w);
#pragma GCC unroll 4
      for (uint32_t k = 0; k < kStepColumns; ++k) {
#pragma GCC unroll 4
        for (uint32_t run = 0; run < kRuns; ++run) {
#pragma GCC unroll 4
          for (int t = 0; t < N; ++t) {
            const float xt = x[t * ldx + run * kQuantBlock + step * kStepColumns + k];
            p[run][t] = fma16(w[run][k], set16(xt), p[run][t]);
          }
        }
      }
    }
  }
#pragma GCC unroll 4
  for (uint32_t run = 0; run < kRuns; ++run) {
#pragma GCC unroll 4
    for (int t = 0; t < N; ++t) sums[t] = add16(sums[t], p[run][t]);
  }
}

// Multiplies one group by N tokens, with weights straight from memory.
template <Encoding E, int N>
void multiply_few_k_quant(const uint8_t* super_block, uint32_t cols, const float* x, size_t ldx, float* y,
                          size_t ldy) {
  Lanes16 sums[N];
#pragma GCC unroll 4
  for (int t = 0; t < N; ++t) sums[t] = set16(0);
  for (uint32_t c = 0; c < cols; c += kSuperBlock, super_block += KChunks<E>::kBytes) {
    for (uint32_t i = 0; i < KChunks<E>::kBytes; i += kChunkBytes)
      __builtin_prefetch(super_block + kPrefetchBytes + i);
    add_half<E, N>(super_block, 0, x + c, ldx, sums);
    add_half<E, N>(super_block, 1, x + c + kHalfColumns, ldx, sums);
  }
  for (int t = 0; t < N; ++t) store16(sums[t], y + t * ldy);
}

}  // namespace HWY_NAMESPACE
}  // namespace tierd
HWY_AFTER_NAMESPACE();

#endif
