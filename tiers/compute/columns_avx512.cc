// Columns of block encodings by int8 factors with AVX-512: unpacking interleaves 64 bytes of four columns, so
// that one instruction (VNNI) multiplies 16 outputs of all four.
#include "tiers/compute/columns.h"

#if defined(__x86_64__)
#include <immintrin.h>

#include "core/base/check.h"

#define TIERD_VNNI __attribute__((target("avx512f,avx512vl,avx512bw,avx512dq,avx512vnni,fma,f16c")))
#define TIERD_VNNI_INLINE TIERD_VNNI __attribute__((always_inline)) inline

namespace tierd::avx512_vnni {
namespace {

constexpr uint32_t kPieces = 4;       // of 16 bytes in a vector
constexpr uint32_t kPieceBytes = 16;  // the lanes that are unpacked

// Pieces of a block: for q8_0 a half, for q4_0 both halves, as the low and the high bits.
template <Encoding E>
constexpr uint32_t kBlockPieces = quant_bytes(E) / kPieceBytes;
template <Encoding E>
constexpr uint32_t kBlocks = kPieces / kBlockPieces<E>;
template <Encoding E>
constexpr uint32_t kSums = E == Encoding::q4_0 ? 2 : 1;

// The interleaved bytes of four pieces of four columns: vector k has bytes 4k to 4k + 3 of each piece; for
// each of these bytes, those of the four columns are adjacent.
struct SideBySide {
  __m512i part[kPieces];
};
TIERD_VNNI_INLINE SideBySide side_by_side(const uint8_t* const* columns, size_t at, __mmask64 bytes) {
  const auto load = [&](int i) TIERD_VNNI { return _mm512_maskz_loadu_epi8(bytes, columns[i] + at); };
  const __m512i a = load(0), b = load(1), c = load(2), d = load(3);
  const __m512i ab_low = _mm512_unpacklo_epi8(a, b), ab_high = _mm512_unpackhi_epi8(a, b);
  const __m512i cd_low = _mm512_unpacklo_epi8(c, d), cd_high = _mm512_unpackhi_epi8(c, d);
  return {{_mm512_unpacklo_epi16(ab_low, cd_low), _mm512_unpackhi_epi16(ab_low, cd_low),
           _mm512_unpacklo_epi16(ab_high, cd_high), _mm512_unpackhi_epi16(ab_high, cd_high)}};
}

// Transposes the sums: vector p becomes the 16 outputs of piece p.
TIERD_VNNI_INLINE void by_piece(__m512i (&sum)[kPieces]) {
  const __m512i a = _mm512_shuffle_i32x4(sum[0], sum[1], 0x44),
                b = _mm512_shuffle_i32x4(sum[0], sum[1], 0xee);
  const __m512i c = _mm512_shuffle_i32x4(sum[2], sum[3], 0x44),
                d = _mm512_shuffle_i32x4(sum[2], sum[3], 0xee);
  sum[0] = _mm512_shuffle_i32x4(a, c, 0x88);
  sum[1] = _mm512_shuffle_i32x4(a, c, 0xdd);
  sum[2] = _mm512_shuffle_i32x4(b, d, 0x88);
  sum[3] = _mm512_shuffle_i32x4(b, d, 0xdd);
}

TIERD_VNNI_INLINE void add_outputs(float* y, __m512i sum, float scale) {
  _mm512_storeu_ps(y, _mm512_fmadd_ps(_mm512_set1_ps(scale), _mm512_cvtepi32_ps(sum), _mm512_loadu_ps(y)));
}

// Adds four pieces for N tokens: the blocks from `first` on, of which the strip has `blocks`.
template <Encoding E, int N>
TIERD_VNNI_INLINE void add_pieces(const ColumnStrip& strip, uint32_t first, uint32_t blocks, uint32_t lines) {
  const size_t at = size_t{first} * quant_bytes(E);
  const __mmask64 bytes = ~uint64_t{0} >> (64 - blocks * quant_bytes(E));
  // Gives each piece of 16 bytes the factors of its block.
  const __m512i of_block = _mm512_add_epi32(
      _mm512_set1_epi32(static_cast<int>(first)),
      E == Encoding::q4_0 ? _mm512_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3)
                          : _mm512_setr_epi32(0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1));
  const __m512i mask = _mm512_set1_epi8(static_cast<char>(E == Encoding::q4_0 ? 0xf0 : 0x80));
  __m512i sum[N][kSums<E>][kPieces];
#pragma GCC unroll 4
  for (int t = 0; t < N; ++t) {
#pragma GCC unroll 4
    for (uint32_t k = 0; k < kPieces; ++k) {
      sum[t][0][k] = _mm512_setzero_si512();
      if constexpr (E == Encoding::q4_0) sum[t][1][k] = _mm512_setzero_si512();
    }
  }
  for (uint32_t w = 0; w < strip.words; ++w) {
    const SideBySide four = side_by_side(strip.columns + size_t{w} * kColumnsInWord, at, bytes);
    if (strip.ahead != nullptr) strip.ahead->ask(lines);
    __m512i factor[N];
#pragma GCC unroll 4
    for (int t = 0; t < N; ++t)
      factor[t] = _mm512_permutexvar_epi32(of_block, _mm512_load_si512(strip.factors[t].words[w]));
#pragma GCC unroll 4
    for (uint32_t k = 0; k < kPieces; ++k) {
#pragma GCC unroll 4
      for (int t = 0; t < N; ++t) {
        if constexpr (E == Encoding::q4_0) {
          // One sum is over whole bytes, one over their high bits; the difference is that over the low bits.
          sum[t][0][k] = _mm512_dpbusd_epi32(sum[t][0][k], four.part[k], factor[t]);
          sum[t][1][k] = _mm512_dpbusd_epi32(sum[t][1][k], _mm512_and_si512(four.part[k], mask), factor[t]);
        } else {
          sum[t][0][k] = _mm512_dpbusd_epi32(sum[t][0][k], _mm512_xor_si512(four.part[k], mask), factor[t]);
        }
      }
    }
  }
#pragma GCC unroll 4
  for (int t = 0; t < N; ++t) {
    const ColumnFactors& factors = strip.factors[t];
    by_piece(sum[t][0]);
    if constexpr (E == Encoding::q4_0) by_piece(sum[t][1]);
#pragma GCC unroll 4
    for (uint32_t p = 0; p < kPieces; ++p) {
      const uint32_t block = first + p / kBlockPieces<E>;
      if (block >= first + blocks) break;
      const __m512i start = _mm512_set1_epi32(factors.start[block]);
      float* y = strip.y + t * strip.ldy + size_t{block} * kQuantBlock;
      if constexpr (E == Encoding::q4_0) {
        const __m512i low = _mm512_sub_epi32(sum[t][0][p], sum[t][1][p]);
        const __m512i high = _mm512_srai_epi32(sum[t][1][p], 4);
        add_outputs(y, _mm512_add_epi32(start, low), factors.scale[block]);
        add_outputs(y + kQuantBlock / 2, _mm512_add_epi32(start, high), factors.scale[block]);
      } else {
        add_outputs(y + p % 2 * (kQuantBlock / 2), _mm512_add_epi32(start, sum[t][0][p]),
                    factors.scale[block]);
      }
    }
  }
}

template <Encoding E, int N>
TIERD_VNNI void add_strip_of(const ColumnStrip& strip) {
  const uint32_t steps = (strip.blocks + kBlocks<E> - 1) / kBlocks<E> * strip.words;
  const uint32_t lines = (strip.lines + steps - 1) / steps;
  uint32_t b = 0;
  for (; b + kBlocks<E> <= strip.blocks; b += kBlocks<E>) add_pieces<E, N>(strip, b, kBlocks<E>, lines);
  if (b < strip.blocks) add_pieces<E, N>(strip, b, strip.blocks - b, lines);
}

template <Encoding E>
void add_strip_of(const ColumnStrip& strip) {
  static_assert(kColumnTokens == 2);
  return strip.tokens == 1 ? add_strip_of<E, 1>(strip) : add_strip_of<E, 2>(strip);
}

}  // namespace

void Columns::add_strip(Encoding e, const ColumnStrip& strip) {
  TIERD_CHECK(strip.tokens >= 1 && strip.tokens <= kColumnTokens);
  return e == Encoding::q4_0 ? add_strip_of<Encoding::q4_0>(strip) : add_strip_of<Encoding::q8_0>(strip);
}

}  // namespace tierd::avx512_vnni
#endif
