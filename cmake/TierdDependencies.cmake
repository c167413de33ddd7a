# Everything comes from Debian 12 (ci/packages.txt); nothing is downloaded.
include(AgentDependencies)
find_package(Boost 1.81 REQUIRED)
if(PROJECT_IS_TOP_LEVEL)  # for tools
  find_package(CLI11 REQUIRED)
endif()
pkg_check_modules(uring REQUIRED IMPORTED_TARGET liburing)
pkg_check_modules(hwy REQUIRED IMPORTED_TARGET libhwy)
pkg_check_modules(zstd REQUIRED IMPORTED_TARGET libzstd)
if(PROJECT_IS_TOP_LEVEL)
  pkg_check_modules(prometheus REQUIRED IMPORTED_TARGET prometheus-cpp-core)
  pkg_check_modules(curl REQUIRED libcurl>=7.85)  # headers alone; the library is loaded when a download needs it
  pkg_check_modules(nettle REQUIRED IMPORTED_TARGET nettle)
endif()
pkg_check_modules(pcre2 REQUIRED IMPORTED_TARGET libpcre2-8)
pkg_check_modules(sentencepiece REQUIRED IMPORTED_TARGET sentencepiece)
if(TIERD_LAB)  # for tools/lab and tests
  find_package(Eigen3 3.4 REQUIRED NO_MODULE)
  find_package(GTest REQUIRED)
  pkg_check_modules(cbc REQUIRED IMPORTED_TARGET cbc)
  if(TIERD_BENCH)
    find_package(benchmark REQUIRED)
  endif()
endif()

# Optional, for `tier-train predictor` and `distill` (Debian: libtorch-dev). The function confines the variables and
# messages of Torch's package; its flags and headers reach only targets that link it.
function(tierd_find_torch)
  set(CMAKE_MESSAGE_LOG_LEVEL WARNING)
  find_package(Torch QUIET)
  set(TIERD_TRAINS ${Torch_FOUND} PARENT_SCOPE)
endfunction()
set(TIERD_TRAINS OFF)
# Not under sanitizers: libtorch was built without them, and AddressSanitizer refuses the way it is loaded.
if(TIERD_LAB AND NOT TIERD_TRAIN STREQUAL "OFF" AND NOT TIERD_SANITIZE)
  tierd_find_torch()
endif()
if(TIERD_TRAINS)
  message(STATUS "tier-train: predictor, distill and gate")
elseif(TIERD_TRAIN STREQUAL "ON")
  message(FATAL_ERROR
    "TIERD_TRAIN is ON: that needs TIERD_LAB, libtorch (ci/install libtorch-dev) and a build without sanitizers")
elseif(NOT TIERD_LAB)
  message(STATUS "TIERD_LAB is OFF: tools/lab and tests are left out")
else()
  message(STATUS "tier-train: gate alone (predictor and distill need libtorch: ci/install libtorch-dev)")
endif()
