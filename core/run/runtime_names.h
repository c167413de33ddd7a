// These names of lines in a budget are shared by assembly.cc, which reserves them, and runtime.cc, which has
// them move.
#pragma once

namespace tierd {

inline constexpr const char* kPluginTables = "plugin tables";
inline constexpr const char* kResident = "resident weights";

}  // namespace tierd
