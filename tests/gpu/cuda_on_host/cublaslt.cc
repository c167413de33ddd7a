// The functions of cuBLASLt that tiers/gpu/cuda uses, on the emulated device. Replaces the library's loader.
// Sums are made in float, in the order of the inner width.
#include "tiers/gpu/cuda/cublaslt.h"

#include <cuda_runtime.h>

#include <bit>

namespace tierd::cuda {
namespace {

namespace played {

struct Layout {
  int type = 0;
  uint64_t rows = 0;
  uint64_t columns = 0;
  int64_t ld = 0;
};
constexpr int kInvalid = 7;
int nothing = 0;  // handles and preferences point here

int create_nothing(void** made) {
  *made = &nothing;
  return cublaslt::kSuccess;
}
int destroy_nothing(void*) {
  return cublaslt::kSuccess;
}
int create_desc(cublaslt::MatmulDesc* made, int compute, int scale) {
  *made = &nothing;
  return compute == cublaslt::kCompute32F && scale == cublaslt::kReal32F ? cublaslt::kSuccess : kInvalid;
}
int set_desc(cublaslt::MatmulDesc, int attribute, const void* value, size_t bytes) {
  const bool known = attribute == cublaslt::kTransposeA && bytes == sizeof(int32_t) &&
                     *static_cast<const int32_t*>(value) == cublaslt::kTransposed;
  return known ? cublaslt::kSuccess : kInvalid;
}
int set_preference(cublaslt::Preference, int attribute, const void*, size_t bytes) {
  const size_t expected = attribute == cublaslt::kMostWorkspace ? sizeof(uint64_t) : sizeof(uint32_t);
  return bytes == expected ? cublaslt::kSuccess : kInvalid;
}
int create_layout(cublaslt::MatrixLayout* made, int type, uint64_t rows, uint64_t columns, int64_t ld) {
  *made = new Layout{type, rows, columns, ld};
  return cublaslt::kSuccess;
}
int destroy_layout(cublaslt::MatrixLayout layout) {
  delete static_cast<Layout*>(layout);
  return cublaslt::kSuccess;
}

bool fit(const Layout& a, const Layout& b, const Layout& c) {
  return a.type == cublaslt::kReal16BF && b.type == cublaslt::kReal16BF && c.type == cublaslt::kReal32F &&
         a.rows == b.rows && c.rows == a.columns && c.columns == b.columns && a.ld % 8 == 0 &&
         b.ld % 8 == 0 && c.ld % 4 == 0;
}
int get_heuristic(cublaslt::Handle, cublaslt::MatmulDesc, cublaslt::MatrixLayout a, cublaslt::MatrixLayout b,
                  cublaslt::MatrixLayout c, cublaslt::MatrixLayout, cublaslt::Preference, int most,
                  cublaslt::Heuristic* found, int* n_found) {
  const auto& of_a = *static_cast<const Layout*>(a);
  *n_found = 0;
  if (most < 1 || !fit(of_a, *static_cast<const Layout*>(b), *static_cast<const Layout*>(c))) return kInvalid;
  *found = {};
  found->algorithm.data[0] = of_a.rows;
  *n_found = 1;
  return cublaslt::kSuccess;
}
// An algorithm is valid for one inner width.
int check(cublaslt::Handle, cublaslt::MatmulDesc, cublaslt::MatrixLayout a, cublaslt::MatrixLayout b,
          cublaslt::MatrixLayout c, cublaslt::MatrixLayout, const cublaslt::Algorithm* algorithm,
          cublaslt::Heuristic* result) {
  const auto& of_a = *static_cast<const Layout*>(a);
  *result = {};
  const bool good = fit(of_a, *static_cast<const Layout*>(b), *static_cast<const Layout*>(c)) &&
                    algorithm->data[0] == of_a.rows;
  return good ? cublaslt::kSuccess : kInvalid;
}

float value(uint16_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}
int matmul(cublaslt::Handle, cublaslt::MatmulDesc, const void* alpha, const void* a,
           cublaslt::MatrixLayout layout_a, const void* b, cublaslt::MatrixLayout layout_b, const void* beta,
           const void* c, cublaslt::MatrixLayout layout_c, void* d, cublaslt::MatrixLayout,
           const cublaslt::Algorithm* algorithm, void* workspace, size_t, cudaStream_t stream) {
  const Layout of_a = *static_cast<const Layout*>(layout_a), of_b = *static_cast<const Layout*>(layout_b),
               of_c = *static_cast<const Layout*>(layout_c);
  if (!fit(of_a, of_b, of_c) || algorithm->data[0] != of_a.rows || workspace == nullptr || c != d)
    return kInvalid;
  const float scale = *static_cast<const float*>(alpha), kept = *static_cast<const float*>(beta);
  const auto* const left = static_cast<const uint16_t*>(a);
  const auto* const right = static_cast<const uint16_t*>(b);
  auto* const out = static_cast<float*>(d);
  const auto multiply = [=] {
    for (uint64_t j = 0; j < of_c.columns; ++j) {
      for (uint64_t i = 0; i < of_c.rows; ++i) {
        float sum = 0;
        for (uint64_t k = 0; k < of_a.rows; ++k)
          sum += value(left[i * static_cast<uint64_t>(of_a.ld) + k]) *
                 value(right[j * static_cast<uint64_t>(of_b.ld) + k]);
        float& to = out[j * static_cast<uint64_t>(of_c.ld) + i];
        to = scale * sum + (kept != 0 ? kept * to : 0);
      }
    }
  };
  return on_host::queue_launch(stream, dim3(1), dim3(1), multiply) == cudaSuccess ? cublaslt::kSuccess
                                                                                  : kInvalid;
}

}  // namespace played
}  // namespace

Result<const CublasLt*> CublasLt::load() {
  static const CublasLt library{.name = "cuBLASLt (played by this process)",
                                .create = played::create_nothing,
                                .destroy = played::destroy_nothing,
                                .create_desc = played::create_desc,
                                .set_desc = played::set_desc,
                                .destroy_desc = played::destroy_nothing,
                                .create_layout = played::create_layout,
                                .destroy_layout = played::destroy_layout,
                                .create_preference = played::create_nothing,
                                .set_preference = played::set_preference,
                                .destroy_preference = played::destroy_nothing,
                                .get_heuristic = played::get_heuristic,
                                .check = played::check,
                                .matmul = played::matmul};
  return &library;
}

}  // namespace tierd::cuda
