// SPDX-License-Identifier: Apache-2.0
// Which build of the program this is: for files that only the very same code may read.
#ifndef BASE_BUILD_ID_H
#define BASE_BUILD_ID_H

#include <stdint.h>

// A hash of the linker's build ID of the running program; 0 when it has none.
uint64_t build_id_hash(void);

#endif
