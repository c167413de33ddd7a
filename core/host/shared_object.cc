#include "core/host/shared_object.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <filesystem>
#include <string_view>
#include <utility>

namespace tierd {

Result<const void*> load_symbol(const std::string& path, const ExportedSymbol& symbol) {
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return Error{Code::not_found, path, "there is no such file"};
  // A path without a slash would be looked for where libraries lie.
  const std::string file = std::filesystem::absolute(path, ignored).string();
  void* library = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* why = ::dlerror();
    return file_fault(
        path, fmt::format("cannot be loaded as {}: {}", symbol.kind, why == nullptr ? "no reason" : why));
  }
  const void* found = ::dlsym(library, symbol.name);
  if (found == nullptr) {
    const std::string_view kind = symbol.kind;
    return file_fault(path, fmt::format("is no {}: it does not export '{}' ({}(...) does)",
                                        kind.substr(kind.find(' ') + 1), symbol.name, symbol.macro));
  }
  return found;
}

Error file_fault(const std::string& origin, std::string what) {
  return {Code::plugin_fault, origin, std::move(what)};
}

}  // namespace tierd
