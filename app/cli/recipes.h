// SPDX-License-Identifier: Apache-2.0
// What our recipes say of themselves: the comment at the head of each.
#ifndef CLI_RECIPES_H
#define CLI_RECIPES_H

void recipes_print(void);                  // a list: the first paragraph of each
void recipes_print_head(const char *name); // all of one

#endif
