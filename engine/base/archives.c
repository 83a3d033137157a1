// SPDX-License-Identifier: Apache-2.0
#include "base/archives.h"

#include "base/shared_library.h"

archive_calls archive;

static const shared_call calls[] = {
#define X(name) {"archive_" #name, offsetof(archive_calls, name)},
    ARCHIVE_CALL_MAP(X)
#undef X
};
_Static_assert(sizeof archive == sizeof calls / sizeof *calls * sizeof(void *), "nothing but pointers");

hr_status archives_need(const char *needed_by, hr_err *err)
{
    static shared_state state = SHARED_STATE_INIT;
    const shared_library wanted = {.soname = HEADROOM_ARCHIVE_SONAME,
                                   .needed_by = needed_by,
                                   .hint = "apt install " HEADROOM_ARCHIVE_PACKAGE,
                                   .calls = calls,
                                   .call_count = sizeof calls / sizeof *calls};
    return shared_library_need(&wanted, &state, &archive, err);
}
