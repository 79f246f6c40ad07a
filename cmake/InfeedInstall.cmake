# cmake --install: libraries, headers, infeed-worker, and a package for find_package(infeed).
include(CMakePackageConfigHelpers)

set(installed infeed)
if(TARGET infeed_train)
  list(APPEND installed infeed_train)
  set_target_properties(infeed_train PROPERTIES EXPORT_NAME train)
endif()
set_target_properties(${installed} PROPERTIES INSTALL_RPATH "$ORIGIN")
set_target_properties(infeed-worker PROPERTIES INSTALL_RPATH "$ORIGIN/../../${CMAKE_INSTALL_LIBDIR}")

install(TARGETS ${installed} EXPORT infeedTargets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS infeed-worker RUNTIME DESTINATION ${CMAKE_INSTALL_LIBEXECDIR}/infeed)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/infeed DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
install(EXPORT infeedTargets NAMESPACE infeed:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/infeed)

configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/infeedConfig.cmake.in ${CMAKE_CURRENT_BINARY_DIR}/infeedConfig.cmake
  INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/infeed)
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/infeedConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/infeedConfig.cmake ${CMAKE_CURRENT_BINARY_DIR}/infeedConfigVersion.cmake
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/infeed)
