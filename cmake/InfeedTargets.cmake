# Compiler settings as a target, and the functions that the folders' lists use.

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # Precompiled headers need these sloppiness settings to be cached.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime CCACHE_NOHASHDIR=1 ${CCACHE_PROGRAM})
endif()
find_program(MOLD_PROGRAM mold)

add_library(infeed_settings INTERFACE)
# Of the compiler for CUDA only its host compiler would know them.
target_compile_options(infeed_settings INTERFACE
  "$<$<COMPILE_LANGUAGE:C,CXX>:-Wall;-Wextra;-Wpedantic;-Wconversion;-Wshadow;-Wno-missing-field-initializers;-fpch-preprocess>")
target_include_directories(infeed_settings INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/src>)
if(MOLD_PROGRAM)
  target_link_options(infeed_settings INTERFACE -fuse-ld=mold)
endif()
add_library(infeed_sanitized INTERFACE)  # alone for the bindings, which keep to nanobind's warnings
if(INFEED_SANITIZE)
  target_compile_options(infeed_sanitized INTERFACE -fsanitize=${INFEED_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=undefined)
  target_link_options(infeed_sanitized INTERFACE -fsanitize=${INFEED_SANITIZE})
endif()
target_link_libraries(infeed_settings INTERFACE infeed_sanitized)

# Off, every source shows that it includes what it needs; on, most of a sanitized build's parsing is saved.
option(INFEED_PRECOMPILE "Precompile the headers that most sources include" OFF)
set(INFEED_PRECOMPILED <algorithm> <array> <atomic> <chrono> <cstdint> <cstring> <functional> <memory> <mutex> <optional> <span>
  <string> <string_view> <utility> <vector> <fmt/format.h> <fmt/ranges.h>)

# infeed_precompile(target) lets its sources begin with those headers, which infeed_pch compiles once (src/CMakeLists.txt).
function(infeed_precompile target)
  if(TARGET infeed_pch)
    target_precompile_headers(${target} REUSE_FROM infeed_pch)
  endif()
endfunction()

# infeed_layer(ring DEPENDS memory LINK PkgConfig::x SOURCES doorbell.cpp ...) makes the static library infeed_ring of one folder
# of src/. A layer sees only what it depends on; the shared library takes all of them whole.
function(infeed_layer name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "DEPENDS;LINK;SOURCES")
  add_library(infeed_${name} STATIC ${arg_SOURCES})
  target_link_libraries(infeed_${name} PUBLIC infeed_settings)
  foreach(layer IN LISTS arg_DEPENDS)
    target_link_libraries(infeed_${name} PUBLIC infeed_${layer})
  endforeach()
  target_link_libraries(infeed_${name} PRIVATE ${arg_LINK})
  infeed_precompile(infeed_${name})
endfunction()
