// Libraries of NVIDIA's that are loaded where they are there.
#pragma once

#include <dlfcn.h>

#include <string>

namespace tierd::cuda {

// False: the library has no function of that name.
template <class Function>
bool find_function(void* library, const char* name, Function*& function) {
  function = reinterpret_cast<Function*>(::dlsym(library, name));
  return function != nullptr;
}

// Why the last library was not loaded, or the last function not found.
inline std::string why_not_loaded() {
  const char* const why = ::dlerror();
  return why == nullptr ? "no reason is given" : why;
}

}  // namespace tierd::cuda
