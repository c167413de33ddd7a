#include "tiers/gpu/cuda/bf16_products.h"

#include <algorithm>

#include "core/base/check.h"

namespace tierd::cuda {
namespace {

// The size for which algorithms are chosen: a part of a large operator, and a chunk of a prompt.
constexpr uint32_t kUsualM = 4096;
constexpr uint32_t kUsualN = 512;

}  // namespace

// cuBLASLt is column-major: a line here is a column there.
struct Bf16Products::Layouts {
  Layouts(const CublasLt& from, uint32_t m, uint32_t n, uint32_t k) : library(from) {
    good = library.create_layout(&a, cublaslt::kReal16BF, k, m, k) == cublaslt::kSuccess &&
           library.create_layout(&b, cublaslt::kReal16BF, k, n, k) == cublaslt::kSuccess &&
           library.create_layout(&c, cublaslt::kReal32F, m, n, m) == cublaslt::kSuccess;
  }
  Layouts(const Layouts&) = delete;
  Layouts& operator=(const Layouts&) = delete;
  ~Layouts() {
    for (const cublaslt::MatrixLayout layout : {a, b, c}) {
      if (layout != nullptr) (void)library.destroy_layout(layout);
    }
  }
  const CublasLt& library;
  cublaslt::MatrixLayout a = nullptr, b = nullptr, c = nullptr;
  bool good = false;
};

Result<std::unique_ptr<Bf16Products>> Bf16Products::create() {
  TIERD_ASSIGN(const CublasLt* const library, CublasLt::load());
  std::unique_ptr<Bf16Products> products(new Bf16Products(*library));
  const uint64_t workspace = kWorkspaceBytes;
  const bool begun =
      library->create(&products->handle_) == cublaslt::kSuccess &&
      library->create_desc(&products->desc_, cublaslt::kCompute32F, cublaslt::kReal32F) ==
          cublaslt::kSuccess &&
      library->set_desc(products->desc_, cublaslt::kTransposeA, &cublaslt::kTransposed,
                        sizeof cublaslt::kTransposed) == cublaslt::kSuccess &&
      library->create_preference(&products->preference_) == cublaslt::kSuccess &&
      library->set_preference(products->preference_, cublaslt::kMostWorkspace, &workspace,
                              sizeof workspace) == cublaslt::kSuccess &&
      library->set_preference(products->preference_, cublaslt::kReductionSchemes, &cublaslt::kNoReduction,
                              sizeof cublaslt::kNoReduction) == cublaslt::kSuccess;
  if (!begun) return Error{Code::unsupported, library->name, "cannot be initialized on this device"};
  if (allocate(kWorkspaceBytes, products->workspace_) != cudaSuccess) {
    (void)cudaGetLastError();
    return Error{Code::no_space, library->name, "cannot allocate memory of the device for its workspace"};
  }
  return products;
}

Bf16Products::~Bf16Products() {
  if (preference_ != nullptr) (void)library_.destroy_preference(preference_);
  if (desc_ != nullptr) (void)library_.destroy_desc(desc_);
  if (handle_ != nullptr) (void)library_.destroy(handle_);
}

// Returns NULL if there is no algorithm.
const cublaslt::Algorithm* Bf16Products::algorithm(uint32_t k) {
  auto known = std::ranges::find(chosen_, k, &Chosen::k);
  if (known == chosen_.end()) {
    Chosen chosen;
    chosen.k = k;
    const Layouts usual(library_, kUsualM, kUsualN, k);
    cublaslt::Heuristic best;
    int found = 0;
    chosen.any = usual.good &&
                 library_.get_heuristic(handle_, desc_, usual.a, usual.b, usual.c, usual.c, preference_, 1,
                                        &best, &found) == cublaslt::kSuccess &&
                 found == 1 && best.status == cublaslt::kSuccess;
    chosen.algorithm = best.algorithm;
    known = chosen_.insert(chosen_.end(), chosen);
  }
  return known->any ? &known->algorithm : nullptr;
}

bool Bf16Products::makes(uint32_t m, uint32_t n, uint32_t k) {
  const cublaslt::Algorithm* const chosen = algorithm(k);
  if (chosen == nullptr) return false;
  const Layouts layouts(library_, m, n, k);
  cublaslt::Heuristic result;
  return layouts.good &&
         library_.check(handle_, desc_, layouts.a, layouts.b, layouts.c, layouts.c, chosen, &result) ==
             cublaslt::kSuccess &&
         result.workspace_bytes <= kWorkspaceBytes;
}

cudaError_t Bf16Products::multiply(const Product& p, bool add, cudaStream_t stream) {
  const cublaslt::Algorithm* const chosen = algorithm(p.k);
  TIERD_CHECK(chosen != nullptr);
  const Layouts layouts(library_, p.m, p.n, p.k);
  if (!layouts.good) return cudaErrorMemoryAllocation;
  const float one = 1, beta = add ? 1 : 0;
  const int status =
      library_.matmul(handle_, desc_, &one, p.a, layouts.a, p.b, layouts.b, &beta, p.c, layouts.c, p.c,
                      layouts.c, chosen, workspace_.get(), kWorkspaceBytes, stream);
  return status == cublaslt::kSuccess ? cudaSuccess : cudaErrorUnknown;
}

}  // namespace tierd::cuda
