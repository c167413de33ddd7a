// These names of lines in a budget are shared by runtime.cc, which makes a Runtime, and running_runtime.cc,
// which has what a running one does.
#pragma once

namespace tierd {

inline constexpr const char* kPluginTables = "plugin tables";
inline constexpr const char* kResident = "resident weights";

}  // namespace tierd
