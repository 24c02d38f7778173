# find_package(tilert), pkg-config and the tool. The tree is relocatable.
include(CMakePackageConfigHelpers)

install(
  TARGETS tilert
  EXPORT tilertTargets
  FILE_SET HEADERS)
install(
  EXPORT tilertTargets
  NAMESPACE tilert::
  DESTINATION "${CMAKE_INSTALL_LIBDIR}/cmake/tilert")

# The build tree serves too: find_package(tilert) with -Dtilert_DIR=BUILD.
export(EXPORT tilertTargets NAMESPACE tilert:: FILE "${PROJECT_BINARY_DIR}/tilertTargets.cmake")

# The frontend needs the abseil that it was built with: one from find_package, not one of our own build tree.
if(NOT TILERT_ABSEIL_SOURCE_DIR)
  install(TARGETS tilert_frontend EXPORT tilertFrontendTargets)
  export(EXPORT tilertFrontendTargets NAMESPACE tilert:: FILE "${PROJECT_BINARY_DIR}/tilertFrontendTargets.cmake")
  install(
    EXPORT tilertFrontendTargets
    NAMESPACE tilert::
    DESTINATION "${CMAKE_INSTALL_LIBDIR}/cmake/tilert")
  foreach(header IN LISTS frontend_headers)
    get_filename_component(folder "${header}" DIRECTORY)
    install(FILES "${PROJECT_SOURCE_DIR}/${header}" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/tilert-frontend/${folder}")
  endforeach()
endif()

configure_package_config_file(
  "${PROJECT_SOURCE_DIR}/cmake/tilertConfig.cmake.in" "${PROJECT_BINARY_DIR}/tilertConfig.cmake"
  INSTALL_DESTINATION "${CMAKE_INSTALL_LIBDIR}/cmake/tilert")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/tilertConfigVersion.cmake" COMPATIBILITY SameMajorVersion)
install(FILES "${PROJECT_BINARY_DIR}/tilertConfig.cmake" "${PROJECT_BINARY_DIR}/tilertConfigVersion.cmake"
        DESTINATION "${CMAKE_INSTALL_LIBDIR}/cmake/tilert")

# The .pc file finds its prefix from where it lies, so that the tree may be moved.
file(RELATIVE_PATH TILERT_PC_PREFIX "/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/")
string(REGEX REPLACE "/$" "" TILERT_PC_PREFIX "${TILERT_PC_PREFIX}")
configure_file("${PROJECT_SOURCE_DIR}/cmake/tilert.pc.in" "${PROJECT_BINARY_DIR}/tilert.pc" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/tilert.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")

if(TARGET tilert_tool)
  install(TARGETS tilert_tool)
endif()
