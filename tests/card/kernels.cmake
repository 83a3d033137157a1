# SPDX-License-Identifier: Apache-2.0
# cmake -DIN=preprocessed -DSOURCE=x.cu -DNAME=x -DOUT=x.cpp -P kernels.cmake
# The file that makes a module of a .cu file: its kernels, found where CARD_GLOBAL stands, called by a table.
file(READ ${IN} text)
string(REGEX MATCHALL "CARD_GLOBAL[ \n]+void[ \n]+[A-Za-z0-9_]+[ \n]*\\([ \n]*(const[ \n]+)?[A-Za-z0-9_]+[ \n]" found "${text}")
string(REGEX MATCHALL "CARD_GLOBAL[ \n]" all "${text}")
list(LENGTH found found_count)
list(LENGTH all all_count)
if(NOT found_count EQUAL all_count)
  message(FATAL_ERROR "${SOURCE}: a kernel is extern \"C\" __global__ void NAME(STRUCT a); of ${all_count} kernels ${found_count} are")
endif()
set(calls "")
set(rows "")
foreach(kernel IN LISTS found)
  string(REGEX MATCH "void[ \n]+([A-Za-z0-9_]+)[ \n]*\\([ \n]*(const[ \n]+)?([A-Za-z0-9_]+)" ignored "${kernel}")
  set(name ${CMAKE_MATCH_1})
  set(type ${CMAKE_MATCH_3})
  string(APPEND calls "static void call_${name}(const void *a)\n{\n    ${name}(*static_cast<const ${type} *>(a));\n}\n")
  string(APPEND rows "    {\"${name}\", call_${name}, sizeof(${type})},\n")
endforeach()
file(WRITE ${OUT} "// Made of ${NAME}.cu by tests/card/kernels.cmake.
#include \"words.h\"
#define CARD_GLOBAL
#define CARD_SHARED_SECTION \"card_shared\"
namespace {
#include \"${SOURCE}\"
${calls}
const card_kernel kernels[] = {
${rows}};
}
extern \"C\" {
extern unsigned char __start_card_shared[] __attribute__((weak, visibility(\"hidden\")));
extern unsigned char __stop_card_shared[] __attribute__((weak, visibility(\"hidden\")));
__attribute__((visibility(\"default\"))) extern const card_module_info card_module;
const card_module_info card_module = {kernels, sizeof kernels / sizeof *kernels, __start_card_shared, __stop_card_shared};
}
")
