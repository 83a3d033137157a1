// SPDX-License-Identifier: Apache-2.0
#include "memory/backing.h"

#include <stddef.h>

void backing_close(backing *b)
{
    if (b != NULL && b->close != NULL) {
        b->close(b->context);
        *b = (backing){0};
    }
}
