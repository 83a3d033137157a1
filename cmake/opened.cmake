# SPDX-License-Identifier: Apache-2.0
# hr_opens(TARGET NAME FILE INCLUDES): the target sees a shared library's headers and opens the library itself when it is
# first needed (engine/base/shared_library.h), under the name that its file here gives it: HEADROOM_<NAME>_SONAME and, for
# advice, the package that Debian names after it, HEADROOM_<NAME>_PACKAGE.
function(hr_soname file out)
  execute_process(COMMAND ${CMAKE_READELF} -d ${file} OUTPUT_VARIABLE dynamic ERROR_QUIET)
  string(REGEX MATCH "SONAME[^[]*\\[([^]]+)\\]" found "${dynamic}")
  set(${out} "${CMAKE_MATCH_1}" PARENT_SCOPE)
endfunction()

# The Debian package that a library comes with is one of ours; what comes from elsewhere (NVIDIA's libraries) nobody is made
# to install.
function(hr_depends_on file)
  file(REAL_PATH ${file} real)
  execute_process(COMMAND dpkg-query -S ${real} OUTPUT_VARIABLE owner ERROR_QUIET)
  string(REGEX REPLACE "[:, ].*" "" owner "${owner}")
  if(owner AND NOT owner MATCHES "cuda|cudnn|cublas|nvidia")
    set_property(GLOBAL APPEND PROPERTY HEADROOM_OPENED_PACKAGES ${owner})
  endif()
endfunction()

function(hr_opens target name file includes)
  hr_soname(${file} soname)
  if(NOT soname)
    message(FATAL_ERROR "${file}: needed a shared library, to be opened by name")
  endif()
  string(REPLACE ".so." "" package ${soname})
  string(TOLOWER ${package} package)
  hr_depends_on(${file})
  target_include_directories(${target} SYSTEM PRIVATE ${includes})
  target_compile_definitions(${target} PRIVATE HEADROOM_${name}_SONAME="${soname}" HEADROOM_${name}_PACKAGE="${package}")
endfunction()
