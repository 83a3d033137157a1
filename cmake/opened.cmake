# hr_opens(TARGET NAME FILE INCLUDES): the target sees a shared library's headers and opens the library itself when it is
# first needed (engine/base/shared_library.h), under the name that its file here gives it: HEADROOM_<NAME>_SONAME and, for
# advice, the package that Debian names after it, HEADROOM_<NAME>_PACKAGE.
function(hr_soname file out)
  execute_process(COMMAND ${CMAKE_READELF} -d ${file} OUTPUT_VARIABLE dynamic ERROR_QUIET)
  string(REGEX MATCH "SONAME[^[]*\\[([^]]+)\\]" found "${dynamic}")
  set(${out} "${CMAKE_MATCH_1}" PARENT_SCOPE)
endfunction()

function(hr_opens target name file includes)
  hr_soname(${file} soname)
  if(NOT soname)
    message(FATAL_ERROR "${file}: needed a shared library, to be opened by name")
  endif()
  string(REPLACE ".so." "" package ${soname})
  string(TOLOWER ${package} package)
  target_include_directories(${target} SYSTEM PRIVATE ${includes})
  target_compile_definitions(${target} PRIVATE HEADROOM_${name}_SONAME="${soname}" HEADROOM_${name}_PACKAGE="${package}")
endfunction()
