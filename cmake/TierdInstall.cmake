# Installs, beside programs and plugins, the configurations and the files for authors of plugins: headers, a CMake
# package and a pkg-config file.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

install(DIRECTORY core/include/tierd DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(DIRECTORY configs/ DESTINATION ${CMAKE_INSTALL_DATADIR}/tierd/configs)
install(DIRECTORY plugins/template DESTINATION ${CMAKE_INSTALL_DATADIR}/tierd)

configure_package_config_file(cmake/tierdConfig.cmake.in ${PROJECT_BINARY_DIR}/tierdConfig.cmake
  INSTALL_DESTINATION lib/cmake/tierd
  PATH_VARS CMAKE_INSTALL_INCLUDEDIR)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/tierdConfigVersion.cmake COMPATIBILITY SameMajorVersion)
install(FILES ${PROJECT_BINARY_DIR}/tierdConfig.cmake ${PROJECT_BINARY_DIR}/tierdConfigVersion.cmake
  DESTINATION lib/cmake/tierd)

configure_file(cmake/tierd.pc.in ${PROJECT_BINARY_DIR}/tierd.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/tierd.pc DESTINATION lib/pkgconfig)
