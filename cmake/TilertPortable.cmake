# Preset gpu: the build's bin/ runs on another machine. Third-party shared libraries are copied beside the binaries.
add_custom_target(
  tilert_portable ALL
  COMMAND ${CMAKE_COMMAND} "-DBIN=${CMAKE_BINARY_DIR}/bin" -P "${PROJECT_SOURCE_DIR}/cmake/CopySharedLibraries.cmake"
  COMMENT "Copying third-party shared libraries beside the binaries"
  VERBATIM)
add_dependencies(tilert_portable tilert)
foreach(target tilert_tool)
  if(TARGET ${target})
    add_dependencies(tilert_portable ${target})
  endif()
endforeach()
