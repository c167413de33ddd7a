// Names of budget lines shared by assembly.cc, which reserves them, and runtime.cc, which changes them.
#pragma once

namespace tierd {

inline constexpr const char* kPluginTables = "plugin tables";
inline constexpr const char* kResident = "resident weights";

}  // namespace tierd
