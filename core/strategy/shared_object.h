// Loads a shared object for good: it is never unloaded, since its objects may still be in use.
#pragma once

#include <string>

#include "core/base/result.h"

namespace tierd {

// The names used in errors about the file: "is no plugin: it does not export 'tierd_plugin_entry'
// (TIERD_PLUGIN(...) does)".
struct ExportedSymbol {
  const char* name;
  const char* kind;   // with its article: "a plugin"
  const char* macro;  // the macro that exports it
};

// Returns the address of the symbol in the file at `path`, whose other symbols stay its own (RTLD_LOCAL).
// Runs the file's static initialisers. Errors: not_found; plugin_fault naming the file; those of check_code.
Result<const void*> load_symbol(const std::string& path, const ExportedSymbol& symbol);

// Returns a plugin_fault about the content of the file at `origin`.
Error file_fault(const std::string& origin, std::string what);

}  // namespace tierd
