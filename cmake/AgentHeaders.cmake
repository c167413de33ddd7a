# The headers that agents may include, directly or indirectly, by the table of ci/check_layering.
function(tierd_agent_headers tree out)
  file(GLOB headers RELATIVE ${tree} ${ARGN}
    ${tree}/core/agent/*.h ${tree}/core/base/*.h ${tree}/core/system/*.h ${tree}/core/model/layout/*.h)
  list(REMOVE_ITEM headers core/agent/agent_thread.h core/agent/waiter.h)  # the kernel's side
  list(APPEND headers core/include/tierd/params.h core/model/activation.h)
  list(SORT headers)
  set(${out} ${headers} PARENT_SCOPE)
endfunction()
