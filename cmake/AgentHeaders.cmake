# The headers that agents may include, and what those include in turn; the table of ci/check_layering in short.
function(tierd_agent_headers tree out)
  file(GLOB headers RELATIVE ${tree} ${ARGN}
    ${tree}/core/agent/*.h ${tree}/core/base/*.h ${tree}/core/message/*.h ${tree}/core/layout/*.h
    ${tree}/core/program/*.h)
  list(APPEND headers core/include/tierd/params.h)
  list(SORT headers)
  set(${out} ${headers} PARENT_SCOPE)
endfunction()
