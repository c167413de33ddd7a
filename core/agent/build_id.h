// The properties that an agent and its host must share, as text: C++ types cross between them, so headers and
// layout must be the same. The preprocessor composes the text in each including file, so an agent built
// elsewhere, with other flags, has another id.
#pragma once

#include <cstddef>  // names the standard library, __GLIBCXX__

#include "core/agent/headers_hash.h"  // made by the build: TIERD_HEADERS_HASH, over all that agents may include

#define TIERD_TEXT_INNER(x) #x
#define TIERD_TEXT(x) TIERD_TEXT_INNER(x)

#if defined(__clang__)
#define TIERD_ID_COMPILER "clang " __clang_version__
#else
#define TIERD_ID_COMPILER "gcc " __VERSION__
#endif

#if defined(__GLIBCXX__)
#define TIERD_ID_LIBRARY "libstdc++ " TIERD_TEXT(__GLIBCXX__) " abi " TIERD_TEXT(_GLIBCXX_USE_CXX11_ABI)
#else
#define TIERD_ID_LIBRARY "another standard library"
#endif
#if defined(_GLIBCXX_DEBUG)
#define TIERD_ID_LIBRARY_DEBUG " debug"
#else
#define TIERD_ID_LIBRARY_DEBUG ""
#endif

#if defined(NDEBUG)
#define TIERD_ID_NDEBUG " ndebug"
#else
#define TIERD_ID_NDEBUG ""
#endif

// g++ has macros, clang has features.
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TIERD_ID_SANITIZER " asan"
#elif __has_feature(thread_sanitizer)
#define TIERD_ID_SANITIZER " tsan"
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define TIERD_ID_SANITIZER " asan"
#elif defined(__SANITIZE_THREAD__)
#define TIERD_ID_SANITIZER " tsan"
#elif !defined(TIERD_ID_SANITIZER)
#define TIERD_ID_SANITIZER ""
#endif

#define TIERD_BUILD_ID                                                          \
  "tierd " TIERD_VERSION " headers " TIERD_HEADERS_HASH ", " TIERD_ID_COMPILER  \
  ", " TIERD_ID_LIBRARY TIERD_ID_LIBRARY_DEBUG ", c++ " TIERD_TEXT(__cplusplus) \
      TIERD_ID_NDEBUG TIERD_ID_SANITIZER
