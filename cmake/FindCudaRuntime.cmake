# The host side of CUDA's runtime, 13.0 or newer: headers and libcudart, of a toolkit or of PyPI's packages nvidia-cuda-runtime and
# nvidia-cuda-crt in the checkout's .venv. No compiler for device code is asked for.
#
# Defines CudaRuntime_FOUND, CudaRuntime_VERSION (13.0), the target CudaRuntime::cudart, and CudaRuntime_NVTX: the folder of
# nvtx3/nvToolsExt.h, where there is one.

file(GLOB _cuda_wheels LIST_DIRECTORIES true ${PROJECT_SOURCE_DIR}/.venv/lib/python3*/site-packages/nvidia/cu13)
set(_cuda_hints ${CudaRuntime_ROOT} $ENV{CUDA_PATH} /usr/local/cuda /usr/local/cuda-13 ${_cuda_wheels})
find_path(CudaRuntime_INCLUDE_DIR cuda_runtime_api.h HINTS ${_cuda_hints} PATH_SUFFIXES include targets/x86_64-linux/include)
find_library(CudaRuntime_LIBRARY NAMES cudart libcudart.so.13 HINTS ${_cuda_hints} PATH_SUFFIXES lib64 lib targets/x86_64-linux/lib)
find_path(CudaRuntime_NVTX nvtx3/nvToolsExt.h HINTS ${_cuda_hints} PATH_SUFFIXES include targets/x86_64-linux/include)
mark_as_advanced(CudaRuntime_INCLUDE_DIR CudaRuntime_LIBRARY CudaRuntime_NVTX)

if(CudaRuntime_INCLUDE_DIR)
  file(STRINGS ${CudaRuntime_INCLUDE_DIR}/cuda_runtime_api.h _cudart_version REGEX "#define CUDART_VERSION +[0-9]+")
  string(REGEX REPLACE ".*CUDART_VERSION +([0-9]+).*" "\\1" _cudart_version "${_cudart_version}")
  if(_cudart_version)
    math(EXPR _cudart_major "${_cudart_version} / 1000")
    math(EXPR _cudart_minor "${_cudart_version} % 1000 / 10")
    set(CudaRuntime_VERSION ${_cudart_major}.${_cudart_minor})
  endif()
  # A toolkit has them in one folder; of PyPI's they are a package of their own, and needed all the same.
  if(EXISTS ${CudaRuntime_INCLUDE_DIR}/crt/host_defines.h)
    set(CudaRuntime_HOST_DEFINES ${CudaRuntime_INCLUDE_DIR}/crt/host_defines.h)
  endif()
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(CudaRuntime
  REQUIRED_VARS CudaRuntime_LIBRARY CudaRuntime_INCLUDE_DIR CudaRuntime_HOST_DEFINES VERSION_VAR CudaRuntime_VERSION)

if(CudaRuntime_FOUND AND NOT TARGET CudaRuntime::cudart)
  add_library(CudaRuntime::headers INTERFACE IMPORTED GLOBAL)
  target_include_directories(CudaRuntime::headers SYSTEM INTERFACE ${CudaRuntime_INCLUDE_DIR})
  add_library(CudaRuntime::cudart UNKNOWN IMPORTED GLOBAL)
  set_target_properties(CudaRuntime::cudart PROPERTIES IMPORTED_LOCATION ${CudaRuntime_LIBRARY})
  target_link_libraries(CudaRuntime::cudart INTERFACE CudaRuntime::headers)
endif()
