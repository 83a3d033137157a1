// SPDX-License-Identifier: Apache-2.0
#include "app/cli/recipes.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "headroom/preset.h"

#include "app/cli/say.h"

enum { HEAD_LINE_MAX = 256 };

// The recipe's own lines of help, of what its head says behind the licence: line by line, false at its end.
static bool next_line(FILE *recipe, char line[HEAD_LINE_MAX])
{
    while (fgets(line, HEAD_LINE_MAX, recipe) != NULL && strncmp(line, "--", 2) == 0) {
        line[strcspn(line, "\n")] = '\0';
        if (strstr(line, "SPDX-") == NULL) {
            memmove(line, line + 2 + (line[2] == ' '), strlen(line) - (line[2] == ' '));
            return true;
        }
    }
    return false;
}

static void print_head(const char *name, bool first_paragraph)
{
    char path[HR_RECIPE_PATH_MAX], line[HEAD_LINE_MAX], text[4 * HEAD_LINE_MAX] = "";
    FILE *recipe = hr_recipe_find(name, path, NULL) == HR_OK ? fopen(path, "re") : NULL;
    while (recipe != NULL && next_line(recipe, line) && !(first_paragraph && line[0] == '\0')) {
        if (first_paragraph) {
            const size_t used = strlen(text);
            (void)snprintf(text + used, sizeof text - used, "%s%s", used > 0 ? " " : "", line);
        } else {
            puts(line);
        }
    }
    if (first_paragraph) {
        printf("  %-22s ", name);
        say_paragraph(text, 25);
    }
    if (recipe != NULL) {
        (void)fclose(recipe);
    }
}

static void print_row(const char *name, void *unused)
{
    (void)unused;
    print_head(name, true);
}

void recipes_print(void)
{
    puts("  RECIPE is a FILE.lua, or one of these; `headroom script NAME -h` says more:");
    if (!hr_recipe_list(print_row, NULL)) {
        puts("  (host memory was short: some are missing)");
    }
}

void recipes_print_head(const char *name)
{
    print_head(name, false);
}
