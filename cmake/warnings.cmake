# SPDX-License-Identifier: Apache-2.0
# One interface library carries the language level and the warning set (STYLE.md).
add_library(hr_flags INTERFACE)
target_compile_features(hr_flags INTERFACE c_std_17)
target_compile_definitions(hr_flags INTERFACE _GNU_SOURCE)
set(hr_warnings -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wundef -Wvla
    -Wstrict-prototypes -Wmissing-prototypes -Wformat=2 -Wdouble-promotion -Wwrite-strings -Wcast-qual
    -Wimplicit-fallthrough -Wswitch-enum -Wnull-dereference)
if(CMAKE_C_COMPILER_ID STREQUAL "GNU")
  list(APPEND hr_warnings -Wlogical-op -Wduplicated-cond -Wduplicated-branches)
elseif(CMAKE_C_COMPILER_ID STREQUAL "Clang")
  list(APPEND hr_warnings -Wno-missing-field-initializers) # of {1, 2} in a designated row, where gcc is content
endif()
option(HEADROOM_WERROR "Treat warnings as errors: every preset does" OFF)
if(HEADROOM_WERROR)
  list(APPEND hr_warnings -Werror)
endif()
foreach(flag IN LISTS hr_warnings)
  target_compile_options(hr_flags INTERFACE $<$<COMPILE_LANGUAGE:C>:${flag}>)
endforeach()

set(HEADROOM_SANITIZE "" CACHE STRING "Sanitizers to build with: address;undefined or thread")
if(HEADROOM_SANITIZE)
  string(REPLACE ";" "," hr_sanitize "${HEADROOM_SANITIZE}")
  target_compile_options(hr_flags INTERFACE -fsanitize=${hr_sanitize} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(hr_flags INTERFACE -fsanitize=${hr_sanitize})
endif()
