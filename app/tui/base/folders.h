// SPDX-License-Identifier: Apache-2.0
#ifndef TUI_BASE_FOLDERS_H
#define TUI_BASE_FOLDERS_H

// Makes every folder on the way to `path`, as mkdir -p does.
void folders_make_above(const char *path);

#endif
