# The host side of CUDA 13's runtime: headers and libcudart.so.13, of a toolkit or of PyPI's packages nvidia-cuda-runtime and
# nvidia-cuda-crt in the checkout's .venv, whichever is complete first. No compiler for device code is asked for.
#
#   CudaRuntime_ROOT  where to look first
# Defines CudaRuntime_FOUND, CudaRuntime_VERSION (13.0), the targets CudaRuntime::cudart and CudaRuntime::headers, and
# CudaRuntime_NVTX: the folder of nvtx3/nvToolsExt.h, where there is one.

# _cuda_version(version include): "13.0", or empty.
function(_cuda_version result include)
  set(${result} "" PARENT_SCOPE)
  if(EXISTS ${include}/cuda_runtime_api.h AND EXISTS ${include}/crt/host_defines.h)
    file(STRINGS ${include}/cuda_runtime_api.h line REGEX "#define CUDART_VERSION +[0-9]+")
    if(line MATCHES "CUDART_VERSION +([0-9]+)")
      math(EXPR major "${CMAKE_MATCH_1} / 1000")
      math(EXPR minor "${CMAKE_MATCH_1} % 1000 / 10")
      set(${result} ${major}.${minor} PARENT_SCOPE)
    endif()
  endif()
endfunction()

file(GLOB _cuda_wheels LIST_DIRECTORIES true ${PROJECT_SOURCE_DIR}/.venv/lib/python3*/site-packages/nvidia/cu13)
foreach(_root IN LISTS CudaRuntime_ROOT ITEMS $ENV{CUDA_PATH} /usr/local/cuda /usr/local/cuda-13 ${_cuda_wheels})
  foreach(_include ${_root}/include ${_root}/targets/x86_64-linux/include)
    _cuda_version(_version ${_include})
    find_library(_cudart NAMES libcudart.so.13 PATHS ${_root}/lib64 ${_root}/lib ${_root}/targets/x86_64-linux/lib NO_DEFAULT_PATH NO_CACHE)
    if(NOT CudaRuntime_VERSION AND _version MATCHES "^13[.]" AND _cudart)
      set(CudaRuntime_VERSION ${_version})
      set(CudaRuntime_INCLUDE_DIR ${_include})
      set(CudaRuntime_LIBRARY ${_cudart})
      find_path(CudaRuntime_NVTX nvtx3/nvToolsExt.h PATHS ${_include} NO_DEFAULT_PATH NO_CACHE)
    endif()
    unset(_cudart)
  endforeach()
endforeach()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(CudaRuntime
  REQUIRED_VARS CudaRuntime_LIBRARY CudaRuntime_INCLUDE_DIR VERSION_VAR CudaRuntime_VERSION)

if(CudaRuntime_FOUND AND NOT TARGET CudaRuntime::cudart)
  add_library(CudaRuntime::headers INTERFACE IMPORTED GLOBAL)
  target_include_directories(CudaRuntime::headers SYSTEM INTERFACE ${CudaRuntime_INCLUDE_DIR})
  add_library(CudaRuntime::cudart UNKNOWN IMPORTED GLOBAL)
  set_target_properties(CudaRuntime::cudart PROPERTIES IMPORTED_LOCATION ${CudaRuntime_LIBRARY})
  target_link_libraries(CudaRuntime::cudart INTERFACE CudaRuntime::headers)
endif()
