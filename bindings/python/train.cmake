# infeed.train._train: the companion's extension, and its library beside it in the package.
nanobind_add_module(infeed_train_python NB_STATIC NB_DOMAIN infeed NOMINSIZE
  src/train/module.cpp
  src/errors.cpp src/train/errors.cpp src/train/convert.cpp src/train/types.cpp src/train/modes.cpp src/train/autocast.cpp
  src/train/data.cpp src/train/create.cpp src/train/tensor.cpp src/train/index.cpp src/train/views.cpp
  src/train/elementwise.cpp src/train/reduction.cpp src/train/joining.cpp src/train/matmul.cpp src/train/random.cpp
  src/train/autograd.cpp src/train/function.cpp src/train/nn.cpp src/train/optim.cpp src/train/saving.cpp
  src/train/devices.cpp)
target_link_libraries(infeed_train_python PRIVATE infeed_train infeed_sanitized fmt::fmt)
target_compile_options(infeed_train_python PRIVATE -Wall -Wextra)
set_target_properties(infeed_train_python PROPERTIES
  OUTPUT_NAME _train
  LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/python/infeed/train
  BUILD_RPATH "$<TARGET_FILE_DIR:infeed>;$<TARGET_FILE_DIR:infeed_train>"
  INSTALL_RPATH "$ORIGIN/..")
add_custom_command(TARGET infeed_train_python POST_BUILD
  COMMAND ${CMAKE_COMMAND} -D from=${CMAKE_CURRENT_SOURCE_DIR}/infeed/train -D to=${PROJECT_BINARY_DIR}/python/infeed/train
          -P ${CMAKE_CURRENT_SOURCE_DIR}/link_package.cmake)
add_dependencies(infeed_train_python infeed_python)  # it links the rest of the package

install(TARGETS infeed_train_python LIBRARY DESTINATION infeed/train COMPONENT python EXCLUDE_FROM_ALL)
install(FILES $<TARGET_FILE:infeed_train> DESTINATION infeed COMPONENT python EXCLUDE_FROM_ALL RENAME $<TARGET_SONAME_FILE_NAME:infeed_train>)
