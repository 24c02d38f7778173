# cmake -DBIN=folder -P CopySharedLibraries.cmake: copies what the binaries of the folder load, except the C library and the
# driver, into the folder.
file(GLOB binaries "${BIN}/*")
set(executables "")
set(libraries "")
foreach(file IN LISTS binaries)
  file(READ "${file}" magic LIMIT 4 HEX)
  if(NOT magic STREQUAL "7f454c46")
    continue()
  endif()
  if(file MATCHES "\\.so")
    list(APPEND libraries "${file}")
  else()
    list(APPEND executables "${file}")
  endif()
endforeach()
file(
  GET_RUNTIME_DEPENDENCIES
  EXECUTABLES ${executables}
  LIBRARIES ${libraries}
  RESOLVED_DEPENDENCIES_VAR found
  UNRESOLVED_DEPENDENCIES_VAR missing
  PRE_EXCLUDE_REGEXES "^ld-linux" "^libc\\.so" "^libm\\.so" "^libdl\\.so" "^libpthread\\.so" "^librt\\.so" "^libcuda\\.so" "^libtilert"
  POST_EXCLUDE_REGEXES "^${BIN}/")
foreach(file IN LISTS found)
  file(COPY "${file}" DESTINATION "${BIN}" FOLLOW_SYMLINK_CHAIN)
endforeach()
if(missing)
  message(FATAL_ERROR "not found: ${missing}")
endif()
