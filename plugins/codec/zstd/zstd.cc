// Compresses a neuron as one frame of Zstandard, to compare bitmaps with a general compressor on pruned
// weights, as Endor does.
#include <zstd.h>
#include <zstd_errors.h>

#include <memory>
#include <new>
#include <string>

#include "tierd/plugin.hpp"

namespace {

constexpr tierd_param kParams[] = {
    tierd::integer("level", "3", 1, 19, "compression level; the library's default is 3")};

// Returns whether the input begins like a current frame: the library also reads frames of its first versions,
// and frames without content.
bool is_frame(const void* in, uint64_t n) {
  const auto* bytes = static_cast<const unsigned char*>(in);
  if (n < sizeof(uint32_t)) return false;
  const uint32_t magic = bytes[0] | bytes[1] << 8 | bytes[2] << 16 | uint32_t{bytes[3]} << 24;
  return magic == ZSTD_MAGICNUMBER;
}

// Throws the library's error; `too_small` is the code if `out` is too small.
size_t checked(size_t answer, int too_small = TIERD_E_NO_SPACE) {
  if (ZSTD_isError(answer) == 0) return answer;
  const ZSTD_ErrorCode error = ZSTD_getErrorCode(answer);
  int code = TIERD_E_INVALID;
  if (error == ZSTD_error_memory_allocation) code = TIERD_E_NO_SPACE;
  if (error == ZSTD_error_dstSize_tooSmall) code = too_small;
  throw tierd::Failure(code, ZSTD_getErrorName(answer));
}

class Zstd {
 public:
  explicit Zstd(const tierd::Host& host) {
    if (to_ == nullptr || from_ == nullptr) throw std::bad_alloc();
    // Frames contain the size, which `expand` checks, and no checksum, since the extent has one.
    const auto set = [&](ZSTD_cParameter what, int value) {
      checked(ZSTD_CCtx_setParameter(to_.get(), what, value));
    };
    set(ZSTD_c_compressionLevel, static_cast<int>(host.integer("level")));
    set(ZSTD_c_contentSizeFlag, 1);
    set(ZSTD_c_checksumFlag, 0);
  }

  void bound(uint64_t n, uint64_t& bytes) { bytes = checked(ZSTD_compressBound(n)); }

  void compress(const void* in, uint64_t n, void* out, uint64_t cap, uint64_t& written) {
    written = checked(ZSTD_compress2(to_.get(), out, cap, in, n));
  }

  // Expands in one call, so that the library allocates no window, whatever size a frame claims.
  void expand(const void* in, uint64_t n_in, void* out, uint64_t n_out) {
    const unsigned long long size =
        is_frame(in, n_in) ? ZSTD_getFrameContentSize(in, n_in) : ZSTD_CONTENTSIZE_ERROR;
    if (size == ZSTD_CONTENTSIZE_ERROR || size == ZSTD_CONTENTSIZE_UNKNOWN)
      throw tierd::Failure(TIERD_E_INVALID, "is not a zstd frame with its size");
    if (size != n_out) {
      throw tierd::Failure(TIERD_E_INVALID, "is a frame of " + std::to_string(size) + " bytes, expected " +
                                                std::to_string(n_out));
    }
    const size_t frame = checked(ZSTD_findFrameCompressedSize(in, n_in));
    // A frame that needs more room than it claims is malformed.
    if (checked(ZSTD_decompressDCtx(from_.get(), out, n_out, in, frame), TIERD_E_INVALID) != n_out)
      throw tierd::Failure(TIERD_E_INVALID, "expands to another size than its header has");
  }

 private:
  struct Free {
    void operator()(ZSTD_CCtx* context) const { ZSTD_freeCCtx(context); }
    void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
  };
  std::unique_ptr<ZSTD_CCtx, Free> to_{ZSTD_createCCtx()};
  std::unique_ptr<ZSTD_DCtx, Free> from_{ZSTD_createDCtx()};
};

constexpr const char* kManual =
    "Compresses each neuron by itself with libzstd, whatever its encoding. It treats weights as bytes, and "
    "so\nfinds the zeros of pruned weights only where bytes repeat. A bitmap (model.compression = "
    "\"bitmap\") is\nmade for pruned weights; this codec is what the bitmap is compared with.";

}  // namespace

TIERD_PLUGIN(tierd::with_params(
    tierd::with_manual(tierd::codec<Zstd>("zstd", "1.0", "Zstandard, a frame a neuron"), kManual), kParams))
