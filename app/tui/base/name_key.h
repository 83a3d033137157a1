// SPDX-License-Identifier: Apache-2.0
#ifndef TUI_BASE_NAME_KEY_H
#define TUI_BASE_NAME_KEY_H

#include <stdint.h>

// A number for what is known by a name alone.
uint64_t name_key(const char *name);

#endif
