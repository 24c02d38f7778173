# The two libraries that users link.

file(GLOB public_headers CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/include/tilert/*.h" "${PROJECT_SOURCE_DIR}/include/tilert/*.hpp")

# tilert::tilert: reads, verifies, lowers, runs. Exports the C ABI and nothing else.
add_library(tilert SHARED $<TARGET_OBJECTS:tilert_runtime>)
add_library(tilert::tilert ALIAS tilert)
target_link_libraries(tilert PRIVATE tilert_runtime tilert_lowering tilert_ir tilert_options)
target_sources(
  tilert PUBLIC FILE_SET HEADERS BASE_DIRS "${PROJECT_SOURCE_DIR}/include" FILES ${public_headers})
target_link_options(
  tilert PRIVATE "LINKER:--version-script=${PROJECT_SOURCE_DIR}/cmake/tilert.map" "LINKER:--exclude-libs,ALL" "LINKER:--gc-sections"
  "LINKER:--as-needed")
set_target_properties(
  tilert PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR} LINKER_LANGUAGE CXX
                    LINK_DEPENDS "${PROJECT_SOURCE_DIR}/cmake/tilert.map")

# tilert::frontend: parses TileLang-syntax sources into bundles; for build machines. Its headers, which use abseil, are included as
# in the source tree ("frontend/frontend.h") and installed in a folder of their own.
set(frontend_headers frontend/frontend.h frontend/settings.h)
foreach(name bind_args builder bundle dtype executor expr flat_reader flat_writer numeric printer program sha256 specialize stmt val verifier)
  list(APPEND frontend_headers ir/${name}.h)
endforeach()
list(APPEND frontend_headers ir/dtype.def ir/expr_op.def)
add_library(tilert_frontend STATIC $<TARGET_OBJECTS:tilert_frontend_lib> $<TARGET_OBJECTS:tilert_ir>)
add_library(tilert::frontend ALIAS tilert_frontend)
target_link_libraries(tilert_frontend PUBLIC absl::status absl::statusor absl::strings absl::str_format absl::flat_hash_map
                                             absl::flat_hash_set absl::span absl::hash absl::inlined_vector Threads::Threads)
target_compile_features(tilert_frontend PUBLIC cxx_std_20)
target_include_directories(tilert_frontend PUBLIC "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>"
                                                  "$<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/tilert-frontend>")
set_target_properties(tilert_frontend PROPERTIES LINKER_LANGUAGE CXX EXPORT_NAME frontend)
