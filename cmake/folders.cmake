# SPDX-License-Identifier: Apache-2.0
# hr_folder(NAME [PATH dir] [KNOWS folders...] [USES libraries...])
#
# One static library per folder of engine/. A folder sees the headers of the folders it KNOWS and of nobody
# else (DESIGN "Who may know whom"): each folder's headers are reached through a link farm of its own, so that
# `#include "memory/allocator.h"` compiles only where memory is known. The public headers are open to all.
set(HR_LINKS ${CMAKE_BINARY_DIR}/include)
function(hr_folder name)
  cmake_parse_arguments(ARG "" "PATH" "KNOWS;USES" ${ARGN})
  if(NOT ARG_PATH)
    set(ARG_PATH ${name})
  endif()
  set(source_dir ${CMAKE_SOURCE_DIR}/engine/${ARG_PATH})
  file(MAKE_DIRECTORY ${HR_LINKS}/${name})
  string(REPLACE "/" "_" link_name ${ARG_PATH})
  file(CREATE_LINK ${source_dir} ${HR_LINKS}/${name}/${name} SYMBOLIC)
  file(GLOB sources CONFIGURE_DEPENDS ${source_dir}/*.c ${source_dir}/passes/*.c)
  add_library(hr_${name} STATIC ${sources})
  target_include_directories(hr_${name} PRIVATE ${CMAKE_SOURCE_DIR}/engine/include ${HR_LINKS}/${name})
  foreach(folder IN LISTS ARG_KNOWS)
    target_include_directories(hr_${name} PRIVATE ${HR_LINKS}/${folder})
    target_link_libraries(hr_${name} PRIVATE hr_${folder})
  endforeach()
  target_link_libraries(hr_${name} PRIVATE hr_flags ${ARG_USES})
endfunction()
