# The programs, and the client library as a CMake package: find_package(attend), attend::client.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/attend)
set(header_dir ${CMAKE_INSTALL_INCLUDEDIR}/attend-client)

install(TARGETS attend-server attend RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
set_target_properties(attend_client PROPERTIES EXPORT_NAME client)
set_target_properties(attend_proto PROPERTIES EXPORT_NAME proto)
install(TARGETS attend_client attend_proto EXPORT attend-targets
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
  INCLUDES DESTINATION ${header_dir})
install(EXPORT attend-targets NAMESPACE attend:: DESTINATION ${package_dir})
install(DIRECTORY ${CMAKE_SOURCE_DIR}/client DESTINATION ${header_dir}
  FILES_MATCHING PATTERN "*.h" PATTERN command EXCLUDE)
install(DIRECTORY ${CMAKE_BINARY_DIR}/gen/ DESTINATION ${header_dir} FILES_MATCHING PATTERN "*.pb.h")
install(DIRECTORY ${CMAKE_SOURCE_DIR}/proto/ DESTINATION ${CMAKE_INSTALL_DATADIR}/attend/proto
  FILES_MATCHING PATTERN "*.proto")
install(FILES ${CMAKE_SOURCE_DIR}/deploy/systemd/attend.service
  DESTINATION ${CMAKE_INSTALL_DATADIR}/attend)

configure_package_config_file(${CMAKE_SOURCE_DIR}/cmake/attend-config.cmake.in
  ${CMAKE_BINARY_DIR}/attend-config.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${CMAKE_BINARY_DIR}/attend-config-version.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/attend-config.cmake ${CMAKE_BINARY_DIR}/attend-config-version.cmake
  DESTINATION ${package_dir})
