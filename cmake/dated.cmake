# SPDX-License-Identifier: Apache-2.0
# What carries a date carries that of its sources, so that the same sources give the same bytes: SOURCE_DATE_EPOCH, or the
# commit's, or the changelog's. string(TIMESTAMP) follows the first.
if(NOT DEFINED ENV{SOURCE_DATE_EPOCH})
  execute_process(COMMAND git -C ${CMAKE_SOURCE_DIR} log -1 --format=%ct OUTPUT_VARIABLE hr_epoch
    OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  if(NOT hr_epoch)
    file(TIMESTAMP ${CMAKE_SOURCE_DIR}/CHANGELOG.md hr_epoch "%s" UTC)
  endif()
  set(ENV{SOURCE_DATE_EPOCH} ${hr_epoch})
endif()
string(TIMESTAMP hr_day "%Y-%m-%d" UTC)
string(TIMESTAMP hr_day_and_time "%a, %d %b %Y %H:%M:%S +0000" UTC)
set(hr_epoch $ENV{SOURCE_DATE_EPOCH})
