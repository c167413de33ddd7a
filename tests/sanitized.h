// Whether this is a build with sanitizers, which make everything some ten times as slow: tests that try many
// seeds, moments or sizes try fewer then.
#pragma once

namespace tierd {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

}  // namespace tierd
