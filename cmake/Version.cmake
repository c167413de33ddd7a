# Sets TIERD_VERSION_OF_TAG: the version of the nearest tag vX.Y.Z, or that of this line in a tree without git.
set(TIERD_VERSION_OF_TAG 0.1.0)
execute_process(
  COMMAND git describe --tags --abbrev=0 --match "v[0-9]*.[0-9]*.[0-9]*"
  WORKING_DIRECTORY ${CMAKE_CURRENT_LIST_DIR}
  OUTPUT_VARIABLE tag
  OUTPUT_STRIP_TRAILING_WHITESPACE
  ERROR_QUIET)
if(tag MATCHES "^v([0-9]+\\.[0-9]+\\.[0-9]+)$")
  set(TIERD_VERSION_OF_TAG ${CMAKE_MATCH_1})
endif()
