// SPDX-License-Identifier: Apache-2.0
// Where the worker keeps what it would go on from after a crash: one file beside the remembered looks for each workbench
// that runs, gone with it.
#ifndef TUI_AUTOSAVE_H
#define TUI_AUTOSAVE_H

#include <stddef.h>

// Names this process's file beside `state_path` ("autosave-HOST-PID.save") and removes those of this machine whose
// workbench is no more. "" when `state_path` is NULL or too long.
void autosave_name(const char *state_path, char *path, size_t size);

#endif
