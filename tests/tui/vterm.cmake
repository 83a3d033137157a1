# What is shown in a terminal of our own, for those who have libvterm.
pkg_check_modules(VTERM IMPORTED_TARGET vterm)
if(NOT VTERM_FOUND)
  add_test(NAME tui/vterm COMMAND ${CMAKE_COMMAND} -E echo "skipped: libvterm-dev is not installed")
  set_tests_properties(tui/vterm PROPERTIES LABELS tui SKIP_REGULAR_EXPRESSION "^skipped")
  return()
endif()

foreach(name vterm vterm_saved)
  hr_test(${name} tui)
  target_sources(test_${name} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/vterm.c $<TARGET_OBJECTS:hr_tui_fake>)
  target_include_directories(test_${name} PRIVATE ${CMAKE_SOURCE_DIR})
  target_link_libraries(test_${name} PRIVATE hr_tui PkgConfig::VTERM util)
  target_compile_definitions(test_${name} PRIVATE FAKE_WORKBENCH="$<TARGET_FILE:fake_workbench>"
    HEADROOM_PROGRAM="$<TARGET_FILE:headroom>")
  add_dependencies(test_${name} fake_workbench headroom)
endforeach()
