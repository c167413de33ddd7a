// Functions of NVIDIA's libraries that are loaded at run time.
#pragma once

#include <dlfcn.h>

#include <string>

namespace tierd::cuda {

// Returns false if the library has no function of that name.
template <class Function>
bool find_function(void* library, const char* name, Function*& function) {
  function = reinterpret_cast<Function*>(::dlsym(library, name));
  return function != nullptr;
}

// Returns why the last library was not loaded, or the last function not found.
inline std::string why_not_loaded() {
  const char* const why = ::dlerror();
  return why == nullptr ? "no reason is given" : why;
}

}  // namespace tierd::cuda
