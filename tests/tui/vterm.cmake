# SPDX-License-Identifier: Apache-2.0
# What is shown in a terminal of our own, for those who have libvterm.
pkg_check_modules(VTERM IMPORTED_TARGET vterm)
if(NOT VTERM_FOUND)
  add_test(NAME tui/vterm COMMAND ${CMAKE_COMMAND} -E echo "skipped: libvterm-dev is not installed")
  set_tests_properties(tui/vterm PROPERTIES LABELS tui SKIP_REGULAR_EXPRESSION "^skipped")
  return()
endif()

add_executable(vterm_probe vterm_probe.c)
target_include_directories(vterm_probe PRIVATE ${CMAKE_SOURCE_DIR})
target_link_libraries(vterm_probe PRIVATE hr_tui headroom_engine hr_flags)
set_target_properties(vterm_probe PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)

foreach(name vterm_screen vterm_ends vterm_terminals vterm_events vterm_saved vterm_resume)
  hr_test(${name} tui)
  target_sources(test_${name} PRIVATE vterm.c vterm_workbench.c $<TARGET_OBJECTS:hr_tui_fake>)
  target_include_directories(test_${name} PRIVATE ${CMAKE_SOURCE_DIR})
  target_link_libraries(test_${name} PRIVATE hr_tui PkgConfig::VTERM util)
  target_compile_definitions(test_${name} PRIVATE FAKE_WORKBENCH="$<TARGET_FILE:fake_workbench>"
    VTERM_PROBE="$<TARGET_FILE:vterm_probe>" HEADROOM_PROGRAM="$<TARGET_FILE:headroom>")
  add_dependencies(test_${name} fake_workbench vterm_probe headroom)
endforeach()
target_sources(test_vterm_saved PRIVATE screenshots.c)
