# Finds LibTorch, of a Python environment or unpacked: for infeed::torch, and for tests that compare with it.
#
#   LibTorch_ROOT  where to look first; then Torch_DIR, CMAKE_PREFIX_PATH, and the checkout's .venv
# Defines LibTorch_FOUND, LibTorch_VERSION, LibTorch_LIBRARY_DIR and the target LibTorch::LibTorch. torch's own TorchConfig.cmake is not used: it
# looks for MKL and CUDA, and sets global flags.

file(GLOB _libtorch_hints LIST_DIRECTORIES true ${PROJECT_SOURCE_DIR}/.venv/lib/python3*/site-packages/torch)
set(_libtorch_hints ${LibTorch_ROOT} ${CMAKE_PREFIX_PATH} ${_libtorch_hints})
if(Torch_DIR)
  list(PREPEND _libtorch_hints ${Torch_DIR}/../../..)  # share/cmake/Torch
endif()
find_path(LibTorch_INCLUDE_DIR torch/csrc/api/include/torch/torch.h
  HINTS ${_libtorch_hints} PATH_SUFFIXES include NO_DEFAULT_PATH)
get_filename_component(_libtorch_root "${LibTorch_INCLUDE_DIR}" DIRECTORY)
set(LibTorch_LIBRARY_DIR ${_libtorch_root}/lib)
find_library(LibTorch_LIBRARY torch HINTS ${_libtorch_root}/lib NO_DEFAULT_PATH)
find_library(LibTorch_CPU_LIBRARY torch_cpu HINTS ${_libtorch_root}/lib NO_DEFAULT_PATH)
find_library(LibTorch_CUDA_LIBRARY torch_cuda HINTS ${_libtorch_root}/lib NO_DEFAULT_PATH)  # of a build with CUDA only
find_library(LibTorch_C10_LIBRARY c10 HINTS ${_libtorch_root}/lib NO_DEFAULT_PATH)

if(LibTorch_INCLUDE_DIR AND EXISTS ${_libtorch_root}/version.py)
  file(STRINGS ${_libtorch_root}/version.py _libtorch_version REGEX "^__version__")
  string(REGEX REPLACE ".*'([^']+)'.*" "\\1" LibTorch_VERSION "${_libtorch_version}")
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(LibTorch
  REQUIRED_VARS LibTorch_LIBRARY LibTorch_CPU_LIBRARY LibTorch_C10_LIBRARY LibTorch_INCLUDE_DIR VERSION_VAR LibTorch_VERSION)
mark_as_advanced(LibTorch_INCLUDE_DIR LibTorch_LIBRARY LibTorch_CPU_LIBRARY LibTorch_CUDA_LIBRARY LibTorch_C10_LIBRARY)

if(LibTorch_FOUND AND NOT TARGET LibTorch::LibTorch)
  # The std::string ABI of the wheel: new since 2.6, asked of the library because a mismatch only shows at link time.
  file(STRINGS ${LibTorch_C10_LIBRARY} _libtorch_new_abi LIMIT_COUNT 1 REGEX "__cxx1112basic_string")
  set(_libtorch_cuda)
  if(LibTorch_CUDA_LIBRARY)
    set(_libtorch_cuda ${LibTorch_CUDA_LIBRARY})
  endif()
  add_library(LibTorch::LibTorch INTERFACE IMPORTED)
  target_include_directories(LibTorch::LibTorch SYSTEM INTERFACE
    ${LibTorch_INCLUDE_DIR} ${LibTorch_INCLUDE_DIR}/torch/csrc/api/include)
  if(NOT _libtorch_new_abi)
    target_compile_definitions(LibTorch::LibTorch INTERFACE _GLIBCXX_USE_CXX11_ABI=0)
  endif()
  # torch's registrations live in libtorch_cpu and libtorch_cuda, which a program that names no symbol of them would drop.
  target_link_libraries(LibTorch::LibTorch INTERFACE
    -Wl,--push-state,--no-as-needed ${LibTorch_LIBRARY} ${LibTorch_CPU_LIBRARY} ${_libtorch_cuda} -Wl,--pop-state ${LibTorch_C10_LIBRARY})
  target_link_options(LibTorch::LibTorch INTERFACE -Wl,-rpath,${_libtorch_root}/lib)
endif()
