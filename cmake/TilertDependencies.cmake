# What tilert needs from outside: abseil and FlatBuffers (flatc at build time, headers only), threads and dl.
# Nothing here reaches the network.

if(TILERT_ABSEIL_SOURCE_DIR)
  set(ABSL_PROPAGATE_CXX_STD ON)
  set(CMAKE_POSITION_INDEPENDENT_CODE ON)
  add_subdirectory("${TILERT_ABSEIL_SOURCE_DIR}" "${CMAKE_BINARY_DIR}/abseil" EXCLUDE_FROM_ALL SYSTEM)
elseif(NOT TARGET absl::status)
  find_package(absl REQUIRED)
endif()

find_package(Threads REQUIRED)
find_program(TILERT_FLATC flatc REQUIRED)
find_path(TILERT_FLATBUFFERS_INCLUDE_DIR flatbuffers/flatbuffers.h REQUIRED)

find_program(TILERT_CCACHE ccache)
if(TILERT_CCACHE AND PROJECT_IS_TOP_LEVEL AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_C_COMPILER_LAUNCHER "${TILERT_CCACHE}")
  set(CMAKE_CXX_COMPILER_LAUNCHER "${TILERT_CCACHE}")
endif()
