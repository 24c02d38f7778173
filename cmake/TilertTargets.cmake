# How every target of the project is made. Sources are globbed: a new .cc needs no edit of a CMakeLists.txt.

# What all our own translation units share; never exported.
add_library(tilert_options INTERFACE)
target_compile_features(tilert_options INTERFACE cxx_std_20)
# gcc 12 takes the inlined storage of absl::InlinedVector for uninitialised, or optimised, too small; clang and the sanitizers watch
# that for us.
target_compile_options(
  tilert_options INTERFACE -Wall -Wextra -Wno-missing-field-initializers $<$<BOOL:${TILERT_WERROR}>:-Werror>
                           $<$<CXX_COMPILER_ID:GNU>:-Wno-uninitialized -Wno-maybe-uninitialized>
                           $<$<AND:$<CXX_COMPILER_ID:GNU>,$<CONFIG:Release>>:-Wno-array-bounds -Wno-stringop-overflow>)
target_include_directories(
  tilert_options INTERFACE "${PROJECT_SOURCE_DIR}" "${PROJECT_SOURCE_DIR}/include" "${PROJECT_BINARY_DIR}/generated")
target_include_directories(tilert_options SYSTEM INTERFACE "${TILERT_FLATBUFFERS_INCLUDE_DIR}")
target_link_libraries(
  tilert_options
  INTERFACE absl::status absl::statusor absl::strings absl::str_format absl::flat_hash_map absl::flat_hash_set absl::span absl::hash
            absl::inlined_vector Threads::Threads ${CMAKE_DL_LIBS})

function(tilert_properties target)
  set_target_properties(
    ${target} PROPERTIES CXX_EXTENSIONS OFF POSITION_INDEPENDENT_CODE ON CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
endfunction()

# Halves the time of a whole build. Off in the daily one, so that a missing include is found and a changed header rebuilds no more
# than it must.
option(TILERT_PCH "Precompile the headers that most sources include" OFF)

# tilert_precompile(target headers...): with TILERT_PCH, cmake/pch.h and these. A precompiled header remembers which files it read by
# their paths, so that ccache must not bring one of another clone here, where `#pragma once` would not know the files again: it has a
# text of its own in each build folder.
set(tilert_clone "${PROJECT_BINARY_DIR}/generated/clone.h")
file(CONFIGURE OUTPUT "${tilert_clone}" CONTENT "static_assert(sizeof(R\"path(${PROJECT_BINARY_DIR})path\") > 1);\n" @ONLY)
function(tilert_precompile target)
  if(TILERT_PCH)
    target_precompile_headers(${target} PRIVATE "${tilert_clone}" "${PROJECT_SOURCE_DIR}/cmake/pch.h" ${ARGN})
  endif()
endfunction()

# tilert_precompiled_as(target other): with what is precompiled for `other`.
function(tilert_precompiled_as target other)
  if(TILERT_PCH)
    target_precompile_headers(${target} REUSE_FROM ${other})
  endif()
endfunction()

# The same, for the time that templates take. Off in the daily build, where a changed source compiles alone.
option(TILERT_UNITY "Compile the sources of a topic as one" OFF)

# tilert_layer(NAME target FOLDER folder DEPS targets... TOPICS words...): the static, position-independent library of one folder. Its
# sources are all *.cc below the folder except main.cc. TOPICS: the sources word.cc and word_*.cc of each, or those in folder/word, may be compiled as one. REST: those of no topic too. What one program links
# and another does not belongs apart: an object is linked as a whole.
function(tilert_layer)
  cmake_parse_arguments(arg "REST" "NAME;FOLDER" "DEPS;TOPICS" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/${arg_FOLDER}/*.cc" "${PROJECT_SOURCE_DIR}/${arg_FOLDER}/*.h")
  list(FILTER sources EXCLUDE REGEX "/main\\.cc$")
  set(compiled ${sources})
  list(FILTER compiled INCLUDE REGEX "\\.cc$")
  if(NOT compiled)
    file(WRITE "${CMAKE_CURRENT_BINARY_DIR}/empty.cc" "")
    list(APPEND sources "${CMAKE_CURRENT_BINARY_DIR}/empty.cc")
  endif()
  add_library(${arg_NAME} STATIC ${sources})
  target_link_libraries(${arg_NAME} PUBLIC ${arg_DEPS} tilert_options)
  tilert_properties(${arg_NAME})
  if(arg_NAME STREQUAL "tilert_ir")
    tilert_precompile(${arg_NAME} "${PROJECT_SOURCE_DIR}/ir/program.h")  # which all layers include
  else()
    tilert_precompiled_as(${arg_NAME} tilert_ir)
  endif()
  if(TILERT_UNITY)
    # Not by UNITY_BUILD: it includes by absolute paths, which hides the objects of another clone from ccache.
    if(arg_REST)
      list(APPEND arg_TOPICS rest)
    endif()
    foreach(topic IN LISTS arg_TOPICS)
      set(group ${compiled})
      if(NOT topic STREQUAL "rest")
        list(FILTER group INCLUDE REGEX "/${topic}((_|/)[^/]*)?\\.cc$")
        list(REMOVE_ITEM compiled ${group})
      endif()
      set_source_files_properties(${group} PROPERTIES HEADER_FILE_ONLY ON)
      list(TRANSFORM group REPLACE "^${PROJECT_SOURCE_DIR}/(.*)$" "#include \"\\1\"\n")
      string(JOIN "" text ${group})
      set(unity "${CMAKE_CURRENT_BINARY_DIR}/unity_${topic}.cc")
      file(CONFIGURE OUTPUT "${unity}" CONTENT "${text}" @ONLY)
      target_sources(${arg_NAME} PRIVATE "${unity}")
    endforeach()
  endif()
endfunction()

# tilert_embed(target HEADER path VARIABLE name FILES files...): text files as string constants.
# Writes <build>/generated/<path>, which declares `struct EmbeddedFile {name, text}` and the array `name`.
function(tilert_embed target)
  cmake_parse_arguments(arg "" "HEADER;VARIABLE" "FILES" ${ARGN})
  set(header "${PROJECT_BINARY_DIR}/generated/${arg_HEADER}")
  list(JOIN arg_FILES "|" files)
  add_custom_command(
    OUTPUT "${header}"
    COMMAND ${CMAKE_COMMAND} "-DHEADER=${header}" "-DVARIABLE=${arg_VARIABLE}" "-DFILES=${files}" -P
            "${PROJECT_SOURCE_DIR}/cmake/EmbedFiles.cmake"
    DEPENDS ${arg_FILES} "${PROJECT_SOURCE_DIR}/cmake/EmbedFiles.cmake"
    COMMENT "Embedding ${arg_HEADER}"
    VERBATIM)
  target_sources(${target} PRIVATE "${header}")
endfunction()
