#include "tiers/gpu/cuda_object.h"

#include <dlfcn.h>

#include <filesystem>
#include <string>
#include <string_view>

#include "core/agent/build_id.h"
#include "core/base/trust.h"

namespace tierd {

Result<const cuda::Backend*> load_cuda() {
  Dl_info here{};
  if (::dladdr(reinterpret_cast<const void*>(&load_cuda), &here) == 0 || here.dli_fname == nullptr)
    return Error{Code::not_found, "gpu", "cannot find the file that the agent was loaded from"};
  const std::string path =
      (std::filesystem::absolute(here.dli_fname).parent_path() / cuda::kBackendFile).string();
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored))
    return Error{Code::not_found, path,
                 "there is no such file, because this tierd was built without nvcc; build it on a machine "
                 "with the CUDA toolkit"};
  TIERD_TRY(check_code(path));
  void* const library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* const why = ::dlerror();
    return Error{Code::plugin_fault, path,
                 std::string("cannot be loaded: ") + (why == nullptr ? "no reason" : why)};
  }
  const auto* const backend = static_cast<const cuda::Backend*>(::dlsym(library, cuda::kBackendSymbol));
  if (backend == nullptr || std::string_view(backend->build_id) != TIERD_BUILD_ID)
    return Error{Code::plugin_fault, path,
                 "was built for another tierd than the agent next to it; build both again"};
  return backend;
}

}  // namespace tierd
