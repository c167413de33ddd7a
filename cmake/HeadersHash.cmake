# cmake -DSOURCE=<tree> -DVERSION=<x.y.z> -DOUTPUT=<file> -P HeadersHash.cmake
# Writes the header that core/agent/build_id.h includes: a hash over all headers that agents may include.
include(${CMAKE_CURRENT_LIST_DIR}/AgentHeaders.cmake)
tierd_agent_headers(${SOURCE} headers)
foreach(header IN LISTS headers)
  file(SHA256 ${SOURCE}/${header} hash)
  string(APPEND all "${header} ${hash}\n")
endforeach()
string(SHA256 hash "${all}")
string(SUBSTRING ${hash} 0 16 hash)
# Only when it changes: what includes it is built anew then, and not otherwise.
file(CONFIGURE OUTPUT ${OUTPUT} CONTENT [[
// Made by the build, cmake/HeadersHash.cmake.
#pragma once
#define TIERD_VERSION "@VERSION@"
#define TIERD_HEADERS_HASH "@hash@"
]] @ONLY)
