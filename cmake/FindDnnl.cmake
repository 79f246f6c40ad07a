# oneDNN's own CMake package asks for OpenCL's headers; this looks for the header and the library only.
# Gives Dnnl::Dnnl, Dnnl_VERSION and Dnnl_RUNTIME (OMP, TBB, SEQ, THREADPOOL, SYCL).
find_path(Dnnl_INCLUDE_DIR oneapi/dnnl/dnnl.hpp)
find_library(Dnnl_LIBRARY dnnl)
mark_as_advanced(Dnnl_INCLUDE_DIR Dnnl_LIBRARY)

if(Dnnl_INCLUDE_DIR)
  file(STRINGS ${Dnnl_INCLUDE_DIR}/oneapi/dnnl/dnnl_version.h lines REGEX "#define DNNL_VERSION_(MAJOR|MINOR|PATCH) ")
  string(REGEX REPLACE "[^0-9;]" "" Dnnl_VERSION "${lines}")
  string(REPLACE ";" "." Dnnl_VERSION "${Dnnl_VERSION}")
  file(STRINGS ${Dnnl_INCLUDE_DIR}/oneapi/dnnl/dnnl_config.h line REGEX "#define DNNL_CPU_THREADING_RUNTIME ")
  string(REGEX REPLACE ".*DNNL_RUNTIME_([A-Z]+).*" "\\1" Dnnl_RUNTIME "${line}")
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Dnnl REQUIRED_VARS Dnnl_LIBRARY Dnnl_INCLUDE_DIR VERSION_VAR Dnnl_VERSION)

if(Dnnl_FOUND AND NOT TARGET Dnnl::Dnnl)
  add_library(Dnnl::Dnnl UNKNOWN IMPORTED)
  set_target_properties(Dnnl::Dnnl PROPERTIES IMPORTED_LOCATION ${Dnnl_LIBRARY} INTERFACE_INCLUDE_DIRECTORIES ${Dnnl_INCLUDE_DIR})
endif()
