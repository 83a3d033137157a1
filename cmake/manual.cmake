# SPDX-License-Identifier: Apache-2.0
# cmake -DPROGRAM=headroom -DFOLDER=OUT -P manual.cmake: every page of the manual as OUT/man/manN/NAME.N.gz, and the
# completions as OUT/headroom.bash, _headroom and headroom.fish.
function(hr_say file)
  execute_process(COMMAND ${PROGRAM} ${ARGN} OUTPUT_FILE ${file} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

file(REMOVE_RECURSE ${FOLDER})
file(MAKE_DIRECTORY ${FOLDER})
execute_process(COMMAND ${PROGRAM} manual OUTPUT_VARIABLE list COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCHALL "(^|\n)headroom[^ \n]*" pages "${list}")
foreach(page IN LISTS pages)
  string(STRIP ${page} page)
  string(REGEX REPLACE ".*\\." "" section ${page})
  file(MAKE_DIRECTORY ${FOLDER}/man/man${section})
  hr_say(${FOLDER}/man/man${section}/${page} manual ${page})
  execute_process(COMMAND gzip -9n ${FOLDER}/man/man${section}/${page} COMMAND_ERROR_IS_FATAL ANY)
endforeach()
hr_say(${FOLDER}/headroom.bash completion bash)
hr_say(${FOLDER}/_headroom completion zsh)
hr_say(${FOLDER}/headroom.fish completion fish)
