# Installs, beside programs and plugins, the configurations and the files for authors of plugins and agents: headers, a
# CMake package, a pkg-config file for plugins, libraries for agents.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
include(AgentHeaders)

install(DIRECTORY core/include/tierd plugins/policy/tierd DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(DIRECTORY configs/ DESTINATION ${CMAKE_INSTALL_DATADIR}/tierd/configs)
install(DIRECTORY plugins/template DESTINATION ${CMAKE_INSTALL_DATADIR}/tierd)

# Flags of this build, for tierdConfig.cmake. They follow those of the author's build type, so that they decide.
string(TOUPPER "${CMAKE_BUILD_TYPE}" type)
string(STRIP "${CMAKE_CXX_FLAGS} ${CMAKE_CXX_FLAGS_${type}}" TIERD_AGENT_FLAGS)
if(NOT TIERD_AGENT_FLAGS MATCHES "-DNDEBUG")
  string(APPEND TIERD_AGENT_FLAGS " -UNDEBUG")
endif()
configure_package_config_file(cmake/tierdConfig.cmake.in ${PROJECT_BINARY_DIR}/tierdConfig.cmake
  INSTALL_DESTINATION lib/cmake/tierd
  PATH_VARS CMAKE_INSTALL_INCLUDEDIR)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/tierdConfigVersion.cmake COMPATIBILITY SameMajorVersion)
install(FILES ${PROJECT_BINARY_DIR}/tierdConfig.cmake ${PROJECT_BINARY_DIR}/tierdConfigVersion.cmake
  DESTINATION lib/cmake/tierd)

# Agents are C++ on both sides: tierd::agent has the headers, the libraries and the warnings of this build.
tierd_agent_headers(${PROJECT_SOURCE_DIR} headers)
foreach(header IN LISTS headers)
  cmake_path(GET header PARENT_PATH folder)
  if(NOT folder STREQUAL "core/include/tierd")
    install(FILES ${header} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/tierd-agent/${folder})
  endif()
endforeach()
install(FILES ${PROJECT_BINARY_DIR}/include/core/agent/headers_hash.h
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/tierd-agent/core/agent)

foreach(library options base system layout agent)
  set_target_properties(tierd_${library} PROPERTIES EXPORT_NAME ${library})
  install(TARGETS tierd_${library} EXPORT tierd_agent
    ARCHIVE DESTINATION lib
    INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} ${CMAKE_INSTALL_INCLUDEDIR}/tierd-agent)
endforeach()
install(EXPORT tierd_agent NAMESPACE tierd:: FILE tierdAgent.cmake DESTINATION lib/cmake/tierd)
install(FILES cmake/AgentDependencies.cmake cmake/agent.map DESTINATION lib/cmake/tierd)

configure_file(cmake/tierd.pc.in ${PROJECT_BINARY_DIR}/tierd.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/tierd.pc DESTINATION lib/pkgconfig)
