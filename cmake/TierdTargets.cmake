# Functions that declare libraries, programs and tests. Every target has the same warnings and sanitizers, and includes
# headers from the top of the tree, as "core/…" or "tiers/…".

add_library(tierd_options INTERFACE)
target_include_directories(tierd_options INTERFACE
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}> $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/core/include>)
target_compile_options(tierd_options INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual -Wno-unused-parameter
  # Bits must not depend on the compiler's choice of fused multiplications; kernels call fma explicitly.
  -ffp-contract=off
  $<BUILD_INTERFACE:$<$<BOOL:${TIERD_WERROR}>:-Werror>>)
target_compile_options(tierd_options INTERFACE $<$<COMPILE_LANGUAGE:C>:-Wno-non-virtual-dtor>)
if(CMAKE_UNITY_BUILD AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # g++ treats every file of a unit but the first as a header, and warns of its types in anonymous namespaces.
  target_compile_options(tierd_options INTERFACE -Wno-subobject-linkage)
endif()
if(TIERD_SANITIZE)
  set(TIERD_SANITIZER_FLAGS -fsanitize=${TIERD_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  if(TIERD_SANITIZE MATCHES "address")
    # These checks take a third of the compile time. AddressSanitizer finds null pointers and accesses outside an object
    # as well, and reports more about them.
    list(APPEND TIERD_SANITIZER_FLAGS -fno-sanitize=null,vptr,object-size,pointer-overflow)
  endif()
  if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    # clang 14 also puts its data before the parts of a coroutine, which the assembler refuses.
    list(APPEND TIERD_SANITIZER_FLAGS -fno-sanitize=function)
  endif()
  if(TIERD_SANITIZE MATCHES "thread")
    # g++ warns that ThreadSanitizer ignores Asio's fences.
    list(APPEND TIERD_SANITIZER_FLAGS -Wno-tsan)
  endif()
  target_compile_options(tierd_options INTERFACE ${TIERD_SANITIZER_FLAGS})
  target_link_options(tierd_options INTERFACE -fsanitize=${TIERD_SANITIZE})
endif()
if(TIERD_FUZZ)
  # Coverage that guides libFuzzer; its main() is linked into the programs of tests/fuzz alone.
  target_compile_options(tierd_options INTERFACE -fsanitize=fuzzer-no-link)
endif()

# tierd_library(<name> SOURCES … [DEPS …]): a static library called tierd_<name>.
function(tierd_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  if(ARG_SOURCES)
    add_library(tierd_${name} STATIC ${ARG_SOURCES})
    target_link_libraries(tierd_${name} PUBLIC tierd_options ${ARG_DEPS})
  else()
    add_library(tierd_${name} INTERFACE)
    target_link_libraries(tierd_${name} INTERFACE tierd_options ${ARG_DEPS})
  endif()
endfunction()

# tierd_program(<name> SOURCES … [DEPS …]): an executable in build/<preset>/bin.
function(tierd_program name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE tierd_options ${ARG_DEPS})
  if(TIERD_SANITIZE)  # mostly argument parsing; the code that takes time is in libraries
    target_compile_options(${name} PRIVATE -O0)
  endif()
endfunction()

# Declares an executable that precompiles the headers of tests; objects of libraries have other flags.
function(tierd_test_headers name)
  cmake_parse_arguments(ARG "" "" "HEADERS;DEPS" ${ARGN})
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/${name}.cc CONTENT "int main() {}\n")
  add_executable(${name} ${PROJECT_BINARY_DIR}/${name}.cc)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
  target_link_libraries(${name} PRIVATE tierd_options nlohmann_json::nlohmann_json GTest::gmock GTest::gtest ${ARG_DEPS})
  target_precompile_headers(${name} PRIVATE
    <gmock/gmock.h> <gtest/gtest.h> <algorithm> <filesystem> <fstream> <functional> <map> <memory> <span> <string> <vector>
    <nlohmann/json.hpp> ${ARG_HEADERS})
  target_compile_options(${name} PRIVATE ${TIERD_TEST_OPTIONS})
endfunction()

if(TIERD_LAB)
  if(NOT CMAKE_BUILD_TYPE STREQUAL "Release")
    # The tested libraries are optimised. The tests are not, and compile a third faster.
    set(TIERD_TEST_OPTIONS -O0)
  endif()
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    list(APPEND TIERD_TEST_OPTIONS -fpch-preprocess)  # for ccache
  endif()
  tierd_test_headers(tierd_test_headers)
  # Tests that run models depend on nearly every header of core, which takes more time than their own lines.
  tierd_test_headers(tierd_run_test_headers DEPS tierd_run HEADERS
    "${PROJECT_SOURCE_DIR}/core/run/prepare_run.h" "${PROJECT_SOURCE_DIR}/core/run/runtime.h"
    "${PROJECT_SOURCE_DIR}/core/run/run_trace.h" "${PROJECT_SOURCE_DIR}/core/store/writer.h")
endif()

# tierd_test(<name> SOURCES … [DEPS …] [LABELS …]): one GoogleTest program, one CTest entry.
# Tests find the source tree through TIERD_SOURCE_DIR and may write only under the build tree. `tierd_tests` builds the
# tests that CTest runs, and their dependencies.
# A unity build compiles the files of a test together, so names in their anonymous namespaces must differ.
add_custom_target(tierd_tests)
function(tierd_test name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS;LABELS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
  target_link_libraries(${name} PRIVATE tierd_options ${ARG_DEPS} GTest::gmock GTest::gtest_main)
  target_compile_definitions(${name} PRIVATE
    TIERD_SOURCE_DIR="${PROJECT_SOURCE_DIR}" TIERD_PLUGIN_DIR="${CMAKE_LIBRARY_OUTPUT_DIRECTORY}")
  target_compile_options(${name} PRIVATE ${TIERD_TEST_OPTIONS})
  if(tierd_run IN_LIST ARG_DEPS)
    target_precompile_headers(${name} REUSE_FROM tierd_run_test_headers)
  else()
    target_precompile_headers(${name} REUSE_FROM tierd_test_headers)
  endif()
  add_dependencies(${name} tierd_plugins)
  if(TIERD_SANITIZE)
    set(left_out ${TIERD_PLAIN_TESTS})
  else()
    set(left_out ${TIERD_SANITIZED_TESTS})
  endif()
  if(TIERD_SHORT AND name IN_LIST left_out)
    set_target_properties(${name} PROPERTIES EXCLUDE_FROM_ALL ON)
    return()
  endif()
  add_dependencies(tierd_tests ${name})
  add_test(NAME ${name} COMMAND ${name})
  # Tests use backend host on every machine, since a GPU gives other bits; tests/bench/gpu tests a GPU.
  set_tests_properties(${name} PROPERTIES TIMEOUT 300 LABELS "${ARG_LABELS}" ENVIRONMENT "CUDA_VISIBLE_DEVICES=")
endfunction()

# Headers that plugins may share: <tierd/policy/…>.
add_library(tierd_policy INTERFACE)
target_include_directories(tierd_policy INTERFACE ${PROJECT_SOURCE_DIR}/plugins/policy)

# Compile options of strategies, which include <tierd/…> alone and export one symbol.
add_library(tierd_plugin_options INTERFACE)
target_include_directories(tierd_plugin_options INTERFACE ${PROJECT_SOURCE_DIR}/core/include)
target_link_libraries(tierd_plugin_options INTERFACE tierd_policy)
target_compile_options(tierd_plugin_options INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wno-unused-parameter -ffp-contract=off
  $<$<BOOL:${TIERD_WERROR}>:-Werror>)
if(TIERD_SANITIZE)
  target_compile_options(tierd_plugin_options INTERFACE ${TIERD_SANITIZER_FLAGS})
  target_link_options(tierd_plugin_options INTERFACE -fsanitize=${TIERD_SANITIZE})
endif()

add_custom_target(tierd_plugins)  # the strategies and agents that programs load

# tierd_plugin(<kind> <name> SOURCES …): the strategy build/<preset>/lib/tierd/<kind>-<name>.so.
function(tierd_plugin kind name)
  cmake_parse_arguments(ARG "" "FOLDER" "SOURCES" ${ARGN})
  set(target plugin_${kind}_${name})
  add_library(${target} MODULE ${ARG_SOURCES})
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR})  # for its own files; ci/check_layering checks that
  target_link_libraries(${target} PRIVATE tierd_plugin_options)
  set_target_properties(${target} PROPERTIES
    PREFIX "" OUTPUT_NAME ${kind}-${name} CXX_STANDARD 17 C_VISIBILITY_PRESET hidden CXX_VISIBILITY_PRESET hidden)
  if(ARG_FOLDER)  # for tests, not for programs
    set_target_properties(${target} PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${ARG_FOLDER})
  else()
    add_dependencies(tierd_plugins ${target})
    install(TARGETS ${target} LIBRARY DESTINATION lib/tierd)
  endif()
endfunction()

# tierd_agent(<name> SOURCES … DEPS …): the agent build/<preset>/lib/tierd/agent-<name>.so. It exports its entry
# alone, so the libraries of this tree that it links are its own copies.
function(tierd_agent name)
  cmake_parse_arguments(ARG "" "FOLDER;TARGET" "SOURCES;DEPS" ${ARGN})
  set(target agent_${name})
  if(ARG_TARGET)
    set(target ${ARG_TARGET})
  endif()
  add_library(${target} MODULE ${ARG_SOURCES})
  target_link_libraries(${target} PRIVATE tierd_agent ${ARG_DEPS})
  target_link_options(${target} PRIVATE -Wl,--version-script=${PROJECT_SOURCE_DIR}/cmake/agent.map)
  set_target_properties(${target} PROPERTIES
    PREFIX "" OUTPUT_NAME agent-${name} CXX_VISIBILITY_PRESET hidden LINK_DEPENDS ${PROJECT_SOURCE_DIR}/cmake/agent.map)
  if(ARG_FOLDER)  # for tests, not for programs
    set_target_properties(${target} PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${ARG_FOLDER})
  else()
    add_dependencies(tierd_plugins ${target})
    install(TARGETS ${target} LIBRARY DESTINATION lib/tierd)
  endif()
endfunction()
