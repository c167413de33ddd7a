#include "core/strategy/shared_object.h"

#include <dlfcn.h>
#include <elf.h>
#include <fmt/format.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <utility>

#include "core/base/trust.h"

namespace tierd {

namespace {

// Returns whether an ELF file is shorter than its mapped segments; using it would raise SIGBUS. Files that
// are not 64-bit ELF files of this machine are left to the loader.
bool is_cut_short(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::error_code unknown;
  const uint64_t size = std::filesystem::file_size(path, unknown);
  Elf64_Ehdr head{};
  if (unknown || !file.read(reinterpret_cast<char*>(&head), sizeof head)) return false;
  if (std::memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 || head.e_ident[EI_CLASS] != ELFCLASS64) return false;
  if (head.e_phentsize != sizeof(Elf64_Phdr)) return false;
  for (uint32_t i = 0; i < head.e_phnum; ++i) {
    Elf64_Phdr part{};
    file.seekg(static_cast<std::streamoff>(head.e_phoff + i * sizeof part));
    if (!file.read(reinterpret_cast<char*>(&part), sizeof part)) return true;
    if (part.p_type == PT_LOAD && (part.p_filesz > size || part.p_offset > size - part.p_filesz)) return true;
  }
  return false;
}

}  // namespace

Result<const void*> load_symbol(const std::string& path, const ExportedSymbol& symbol) {
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return Error{Code::not_found, path, "there is no such file"};
  if (!std::filesystem::is_regular_file(path, ignored)) return file_fault(path, "is not a file");
  TIERD_TRY(check_code(path));
  if (is_cut_short(path)) return file_fault(path, "is truncated");
  // dlopen would search the library path for a name without a slash.
  const std::string file = std::filesystem::absolute(path, ignored).string();
  void* library = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* why = ::dlerror();
    return file_fault(
        path, fmt::format("cannot be loaded as {}: {}", symbol.kind, why == nullptr ? "no reason" : why));
  }
  const void* found = ::dlsym(library, symbol.name);
  if (found == nullptr) {
    return file_fault(path, fmt::format("is not {}: it does not export '{}', which {}(...) defines",
                                        symbol.kind, symbol.name, symbol.macro));
  }
  return found;
}

Error file_fault(const std::string& origin, std::string what) {
  return {Code::plugin_fault, origin, std::move(what)};
}

}  // namespace tierd
