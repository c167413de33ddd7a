// Whether this build has sanitizers, which make everything about ten times slower. Tests that try many seeds,
// moments or sizes then try fewer.
#pragma once

namespace tierd {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

}  // namespace tierd
