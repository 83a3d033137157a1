// SPDX-License-Identifier: Apache-2.0
#ifndef APP_CONSOLE_OFFERS_H
#define APP_CONSOLE_OFFERS_H

#include <stdio.h>

#include "app/lua/complete.h"

// The hint, broken at blanks, and the candidates in columns, in lines of at most `columns` characters.
void offers_print(const script_completion *c, unsigned columns, FILE *to);

#endif
