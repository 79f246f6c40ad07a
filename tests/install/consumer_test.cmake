# See CMakeLists.txt. Every step must succeed; the program's own exit code is the verdict.
function(step)
  execute_process(COMMAND ${ARGV} RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "'${ARGV}' ended with ${result}:\n${output}")
  endif()
  message("${output}")
endfunction()

file(REMOVE_RECURSE ${SCRATCH})
step(${CMAKE_COMMAND} --install ${BUILD} --prefix ${SCRATCH}/prefix)
step(${CMAKE_COMMAND} -S ${SOURCE} -B ${SCRATCH}/build -G Ninja -D CMAKE_BUILD_TYPE=Release -D CMAKE_CXX_COMPILER=${CXX}
  -D CMAKE_CXX_FLAGS=${FLAGS} -D CMAKE_PREFIX_PATH=${SCRATCH}/prefix ${EXTRA})
step(${CMAKE_COMMAND} --build ${SCRATCH}/build)
step(${SCRATCH}/build/app)
