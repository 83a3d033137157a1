// SPDX-License-Identifier: Apache-2.0
#include "app/cli/build_info.h"

#include <stdio.h>

#if defined __clang__
#define COMPILER "clang " __clang_version__
#elif defined __GNUC__
#define COMPILER "gcc " __VERSION__
#else
#define COMPILER "unknown"
#endif

#define FOUND(have) ((have) ? "yes" : "no")

void build_info_print(void)
{
    printf("headroom %s\n", HEADROOM_VERSION);
    printf("  build      %s, %s\n", HEADROOM_BUILD_TYPE, COMPILER);
    printf("  oneDNN     %s%s%s\n", FOUND(HEADROOM_HAVE_ONEDNN), HEADROOM_HAVE_ONEDNN ? ", " : "",
           HEADROOM_ONEDNN_VERSION);
    printf("  CUDA       %s%s%s\n", FOUND(HEADROOM_HAVE_CUDA), HEADROOM_HAVE_CUDA ? ", kernels for " : "",
           HEADROOM_CUDA_KERNELS);
    printf("  screen     ncursesw %s\n", HEADROOM_NCURSES_VERSION);
    printf("  scripts    %s%s\n", HEADROOM_HAVE_LUA ? "Lua " : "no",
           HEADROOM_HAVE_LUA ? HEADROOM_LUA_VERSION : "");
    printf("  console    libedit %s\n", HEADROOM_EDIT_VERSION);
    printf("  presets    libyaml %s\n", HEADROOM_YAML_VERSION);
    printf("  archives   libarchive %s\n", HEADROOM_ARCHIVE_VERSION);
}
