# Which Python the bindings are built for, and its nanobind: that of the checkout's .venv, or the one that runs the build of a wheel.
# Sets infeed_python_found, and Python_* and nanobind's functions where it is true.
if(NOT Python_EXECUTABLE AND EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/.venv/bin/python)
  set(Python_EXECUTABLE ${CMAKE_CURRENT_SOURCE_DIR}/.venv/bin/python)
endif()
set(infeed_python_found OFF)
find_package(Python 3.10 QUIET COMPONENTS Interpreter Development.Module)
if(Python_FOUND AND NOT INFEED_SANITIZE)
  execute_process(COMMAND ${Python_EXECUTABLE} -m nanobind --cmake_dir
    OUTPUT_VARIABLE infeed_nanobind_dir OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
  if(NOT failed)
    set(infeed_python_found ON)
  endif()
endif()
