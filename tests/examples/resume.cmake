# Trains to the end; then with a stop in the middle of an epoch, and a resume with other workers. All that the two
# checkpoints hold must be the same bytes.
#   cmake -DPROGRAM=... -DSTOP=5 "-DARGS=--epochs;2" -P resume.cmake
cmake_minimum_required(VERSION 3.25)

function(train out)
  execute_process(COMMAND ${PROGRAM} ${ARGS} --out ${out} ${ARGN} RESULT_VARIABLE code)
  if(NOT code EQUAL 0)
    message(FATAL_ERROR "${PROGRAM} --out ${out} ${ARGN}: ${code}")
  endif()
endfunction()

function(compare file result)
  execute_process(COMMAND ${CMAKE_COMMAND} -E compare_files whole/${file} parts/${file} RESULT_VARIABLE code ERROR_QUIET)
  set(${result} ${code} PARENT_SCOPE)
endfunction()

file(REMOVE_RECURSE whole parts)
train(whole)
train(parts --stop-after ${STOP})
compare(model.safetensors differs)
if(NOT differs)
  message(FATAL_ERROR "it did not stop")
endif()
train(parts --resume --workers 0)

file(GLOB files RELATIVE ${CMAKE_CURRENT_BINARY_DIR}/whole whole/*.safetensors)
if(NOT "model.safetensors" IN_LIST files)
  message(FATAL_ERROR "no checkpoint in ${CMAKE_CURRENT_BINARY_DIR}/whole")
endif()
foreach(file ${files})
  compare(${file} differs)
  if(differs)
    message(FATAL_ERROR "${file} differs between the run without a stop and the resumed one")
  endif()
endforeach()
