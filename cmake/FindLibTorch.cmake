# Finds the LibTorch of a Python environment, for the tests that compare with it; the libraries never link it.
#
#   LibTorch_ROOT  where to look first; default: the checkout's .venv
# Defines LibTorch_FOUND, LibTorch_VERSION and the target LibTorch::LibTorch. torch's own TorchConfig.cmake is not used: it
# looks for MKL and CUDA, and sets global flags.

file(GLOB _libtorch_hints LIST_DIRECTORIES true ${PROJECT_SOURCE_DIR}/.venv/lib/python3*/site-packages/torch)
find_path(LibTorch_INCLUDE_DIR torch/csrc/api/include/torch/torch.h
  HINTS ${LibTorch_ROOT} ${_libtorch_hints} PATH_SUFFIXES include NO_DEFAULT_PATH)
get_filename_component(_libtorch_root "${LibTorch_INCLUDE_DIR}" DIRECTORY)
find_library(LibTorch_LIBRARY torch HINTS ${_libtorch_root}/lib NO_DEFAULT_PATH)
find_library(LibTorch_CPU_LIBRARY torch_cpu HINTS ${_libtorch_root}/lib NO_DEFAULT_PATH)
find_library(LibTorch_C10_LIBRARY c10 HINTS ${_libtorch_root}/lib NO_DEFAULT_PATH)

if(LibTorch_INCLUDE_DIR AND EXISTS ${_libtorch_root}/version.py)
  file(STRINGS ${_libtorch_root}/version.py _libtorch_version REGEX "^__version__")
  string(REGEX REPLACE ".*'([^']+)'.*" "\\1" LibTorch_VERSION "${_libtorch_version}")
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(LibTorch
  REQUIRED_VARS LibTorch_LIBRARY LibTorch_CPU_LIBRARY LibTorch_C10_LIBRARY LibTorch_INCLUDE_DIR VERSION_VAR LibTorch_VERSION)
mark_as_advanced(LibTorch_INCLUDE_DIR LibTorch_LIBRARY LibTorch_CPU_LIBRARY LibTorch_C10_LIBRARY)

if(LibTorch_FOUND AND NOT TARGET LibTorch::LibTorch)
  # The std::string ABI of the wheel: new since 2.6, asked of the library because a mismatch only shows at link time.
  file(STRINGS ${LibTorch_C10_LIBRARY} _libtorch_new_abi LIMIT_COUNT 1 REGEX "__cxx1112basic_string")
  add_library(LibTorch::LibTorch INTERFACE IMPORTED)
  target_include_directories(LibTorch::LibTorch SYSTEM INTERFACE
    ${LibTorch_INCLUDE_DIR} ${LibTorch_INCLUDE_DIR}/torch/csrc/api/include)
  if(NOT _libtorch_new_abi)
    target_compile_definitions(LibTorch::LibTorch INTERFACE _GLIBCXX_USE_CXX11_ABI=0)
  endif()
  # torch's registrations live in libtorch_cpu, which a program that names no symbol of it would drop.
  target_link_libraries(LibTorch::LibTorch INTERFACE
    -Wl,--push-state,--no-as-needed ${LibTorch_LIBRARY} ${LibTorch_CPU_LIBRARY} -Wl,--pop-state ${LibTorch_C10_LIBRARY})
  target_link_options(LibTorch::LibTorch INTERFACE -Wl,-rpath,${_libtorch_root}/lib)
endif()
