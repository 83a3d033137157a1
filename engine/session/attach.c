// SPDX-License-Identifier: Apache-2.0
// What a session can be attached to: a training that is watched, or a trace that is played.
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "headroom/session.h"

#include "session/session_impl.h"

hr_status hr_session_attach(const char *path, hr_session **out, hr_err *err)
{
    struct stat info;
    *out = NULL;
    if (stat(path, &info) != 0) {
        return HR_FAIL(err, READ, "%s: needed a watch socket or a trace, had: %s", path, strerror(errno));
    }
    hr_status status = S_ISSOCK(info.st_mode) ? client_watch(path, out, err) : played_open(path, out, err);
    if (status == HR_OK) {
        session_flag(*out);
    }
    return status;
}
