# The infeed-worker executable: of the shared library where there is one, so that plugins and worker share it.
add_executable(infeed-worker ${CMAKE_CURRENT_LIST_DIR}/worker_main.cpp)
target_link_libraries(infeed-worker PRIVATE infeed_settings)
if(TARGET infeed)
  target_link_libraries(infeed-worker PRIVATE infeed)
else()
  target_link_libraries(infeed-worker PRIVATE infeed_worker)
endif()
