# Which Python the bindings are built for, and its nanobind: that of the checkout's .venv, or the one that runs the build of a wheel.
# Sets infeed_nanobind_dir, Python_*, and infeed_python_default: both are there, and this project is built for itself.
if(NOT Python_EXECUTABLE AND EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/.venv/bin/python)
  set(Python_EXECUTABLE ${CMAKE_CURRENT_SOURCE_DIR}/.venv/bin/python)
endif()
set(infeed_python_default OFF)
find_package(Python 3.10 QUIET COMPONENTS Interpreter Development.Module)
if(Python_FOUND)
  execute_process(COMMAND ${Python_EXECUTABLE} -m nanobind --cmake_dir
    OUTPUT_VARIABLE infeed_nanobind_dir OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
  if(PROJECT_IS_TOP_LEVEL AND NOT failed AND NOT INFEED_SANITIZE)
    set(infeed_python_default ON)
  endif()
endif()
