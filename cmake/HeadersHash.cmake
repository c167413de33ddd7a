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
# Written only when the hash changes, so that files that include it are not rebuilt otherwise.
file(CONFIGURE OUTPUT ${OUTPUT} CONTENT [[
// Made by the build, cmake/HeadersHash.cmake.
#pragma once
#define TIERD_VERSION "@VERSION@"
#define TIERD_HEADERS_HASH "@hash@"
]] @ONLY)
