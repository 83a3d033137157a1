# SPDX-License-Identifier: Apache-2.0
# What `cmake --install` puts where, and the .deb of it. The program looks for share/headroom beside the folder that it lies
# in, so that any prefix will do, also one that is moved later.
set(HEADROOM_CONTACT "headroom developers <headroom@packages.invalid>" CACHE STRING "Who maintains the package")

set(hr_said ${CMAKE_BINARY_DIR}/manual)
add_custom_command(OUTPUT ${hr_said}/headroom.fish
  COMMAND ${CMAKE_COMMAND} -DPROGRAM=$<TARGET_FILE:headroom> -DFOLDER=${hr_said} -P ${CMAKE_SOURCE_DIR}/cmake/manual.cmake
  DEPENDS headroom ${CMAKE_SOURCE_DIR}/cmake/manual.cmake VERBATIM COMMENT "manual and completions")
add_custom_target(headroom_manual ALL DEPENDS ${hr_said}/headroom.fish)

install(TARGETS headroom DESTINATION bin)
install(DIRECTORY presets/ DESTINATION share/headroom/presets FILES_MATCHING PATTERN *.yaml PATTERN *.json)
install(DIRECTORY scripts/recipes/ DESTINATION share/headroom/recipes FILES_MATCHING PATTERN *.lua PATTERN .luarc.json)
install(DIRECTORY scripts/lessons/ DESTINATION share/headroom/lessons FILES_MATCHING PATTERN *.yaml)
install(FILES scripts/export/torch_to_headroom.py scripts/export/keras_to_headroom.py DESTINATION share/headroom/export)
install(TARGETS headroom_numbers headroom_numbers_nvml DESTINATION lib/headroom/record) # deep enough for CPack to call no ldconfig
install(FILES scripts/record/torch_record.py DESTINATION share/headroom/record)
install(DIRECTORY ${hr_said}/man DESTINATION share)
install(FILES ${hr_said}/headroom.bash DESTINATION share/bash-completion/completions RENAME headroom)
install(FILES ${hr_said}/headroom.fish DESTINATION share/fish/vendor_completions.d)
# zsh reads site-functions of /usr/local, and Debian's of /usr are the vendors'.
install(CODE "
  set(folder site-functions)
  if(CMAKE_INSTALL_PREFIX STREQUAL \"/usr\")
    set(folder vendor-completions)
  endif()
  file(INSTALL \"${hr_said}/_headroom\" DESTINATION \"\${CMAKE_INSTALL_PREFIX}/share/zsh/\${folder}\")")
install(FILES packaging/headroom.desktop DESTINATION share/applications)
install(FILES packaging/headroom.svg DESTINATION share/icons/hicolor/scalable/apps)

set(hr_doc share/doc/headroom)
configure_file(packaging/changelog.in ${CMAKE_BINARY_DIR}/packaging/changelog @ONLY)
execute_process(COMMAND gzip -9nf ${CMAKE_BINARY_DIR}/packaging/changelog COMMAND_ERROR_IS_FATAL ANY)
install(FILES README.md ARCHITECTURE.md CONTRIBUTING.md STYLE.md CHANGELOG.md packaging/copyright ${CMAKE_BINARY_DIR}/packaging/changelog.gz
  DESTINATION ${hr_doc})
install(DIRECTORY docs screenshots DESTINATION ${hr_doc} FILES_MATCHING PATTERN *.md PATTERN *.svg)

# ---- the package --------------------------------------------------------------------------------------------------

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME headroom)
set(CPACK_PACKAGE_CONTACT ${HEADROOM_CONTACT})
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "terminal workbench for the memory of neural-network training")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_VERBATIM_VARIABLES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_DESCRIPTION "headroom shows what a training step of a neural network holds in memory,
when, and why it does not fit. It plans a step to the byte for any of eighty
cards without having one, trains on the processor or on an NVIDIA card, and
shows the memory live in a terminal.")
# What the linker sees, dpkg-shlibdeps finds; what is opened when it is first needed stands in no binary (hr_opens).
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
get_property(hr_opened_packages GLOBAL PROPERTY HEADROOM_OPENED_PACKAGES)
list(JOIN hr_opened_packages ", " CPACK_DEBIAN_PACKAGE_DEPENDS)
set(CPACK_DEBIAN_PACKAGE_SUGGESTS liblapacke) # engine/train/svd.c opens it where it is there
include(CPack)
