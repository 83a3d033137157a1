// SPDX-License-Identifier: Apache-2.0
// Status and error sentences: how every function of headroom says that it could not do its work.
//
// A function that can fail returns an hr_status and takes an optional `hr_err *` as its last argument. On
// success the hr_err is untouched; on failure it holds one whole sentence (which thing, needed, had) and one
// `try:` line that can be typed as it stands. The row of the status says what kind of work failed and the exit code.
#ifndef HEADROOM_STATUS_H
#define HEADROOM_STATUS_H

#include <stdint.h>

// X(NAME, exit code, "WHAT failed", "default try")
#define HR_STATUS_MAP(X)                                                                                     \
    X(OK, 0, "", "")                                                                                         \
    X(NOMEM, 1, "host memory", "close other programs, or lower batch.size")                                  \
    X(OOM, 1, "memory", "-s batch.size=N with a smaller N")                                                  \
    X(CHECK, 1, "check", "headroom plan PRESET --at-peak")                                                   \
    X(USAGE, 2, "command line", "headroom --help")                                                           \
    X(KNOB, 2, "knob", "headroom knobs")                                                                     \
    X(CONSTRAINT, 2, "combination of knobs", "headroom knobs")                                               \
    X(PRESET, 2, "preset", "headroom config check FILE")                                                     \
    X(MODEL, 2, "model", "headroom config check FILE")                                                       \
    X(LUA, 3, "script", "headroom script FILE.lua")                                                          \
    X(DEVICE, 4, "device", "headroom devices")                                                               \
    X(DEVICE_LOST, 4, "device lost", "headroom run PRESET -s train.resume=FILE, from the last save")         \
    X(DEPENDENCY, 4, "dependency", "headroom doctor")                                                        \
    X(HOST_LIMIT, 4, "host limit", "-s device.kind=plan")                                                    \
    X(TERMINAL, 4, "terminal", "headroom run PRESET --plain")                                                \
    X(DATA, 5, "data", "-s pipeline.source=generated")                                                       \
    X(READ, 5, "reading", "ls -l the file")                                                                  \
    X(WRITE, 5, "writing", "df -h, or another folder")                                                       \
    X(SAVE, 5, "save", "-s train.resume= to start anew")                                                     \
    X(STATE, 1, "request", "headroom doctor")                                                                \
    X(INTERRUPTED, 130, "interrupted", "the same command again")

typedef enum hr_status {
#define X(name, exit_code, what, hint) HR_##name,
    HR_STATUS_MAP(X)
#undef X
        HR_STATUS_COUNT
} hr_status;

enum { HR_ERR_TEXT_MAX = 512 };

typedef struct hr_err {
    hr_status status;
    const char *file; // source file that raised it; static storage
    int line;
    char sentence[HR_ERR_TEXT_MAX]; // "which thing, needed X, had Y", without the leading "WHAT failed: "
    char hint[HR_ERR_TEXT_MAX];     // what to try: a complete command or key; the row's default when empty
} hr_err;

#define HR_MUST_CHECK __attribute__((warn_unused_result))

// Fills *err (NULL is fine) and returns `status`, so that `return HR_FAIL(err, NOMEM, "...")` reads as one step.
#define HR_FAIL(err, name, ...) hr_err_set((err), HR_##name, __FILE__, __LINE__, __VA_ARGS__)

// Returns the status of `call` from the enclosing function when it is not HR_OK; does nothing else.
#define HR_TRY(call)                                                                                         \
    do {                                                                                                     \
        hr_status hr_try_status_ = (call);                                                                   \
        if (hr_try_status_ != HR_OK) {                                                                       \
            return hr_try_status_;                                                                           \
        }                                                                                                    \
    } while (0)

hr_status hr_err_set(hr_err *err, hr_status status, const char *file, int line, const char *format, ...)
    __attribute__((format(printf, 5, 6)));
// Replaces the row's default `try:` line. No effect when err is NULL.
void hr_err_try(hr_err *err, const char *format, ...) __attribute__((format(printf, 2, 3)));

const char *hr_status_name(hr_status status); // "OOM"; never NULL
const char *hr_status_what(hr_status status); // "memory"
const char *hr_status_try(hr_status status);  // the row's default
int hr_status_exit_code(hr_status status);

// Writes the two lines "headroom: WHAT failed: SENTENCE\n  try: ATTEMPT\n" into text[0..size). Returns the
// length that a large enough buffer would have held.
int hr_err_format(const hr_err *err, char *text, uint32_t size);

// A library that headroom opens may end the process where it finds itself incomplete. `say` is told of it then, as the last
// that the process does, and the exit code is the status' own. Without one, or with NULL: the sentence on stderr.
void hr_err_at_end(void (*say)(const hr_err *err));

#endif
