// SPDX-License-Identifier: Apache-2.0
#include "app/tui/shell/script_cast.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "headroom/json.h"

void script_cast_begin(script_cast *c, FILE *from, FILE *to, int rows, int columns, const char *type)
{
    *c = (script_cast){.from = from, .to = to};
    if (to != NULL) {
        fprintf(to, "{\"version\": 2, \"width\": %d, \"height\": %d, \"env\": {\"TERM\": ", columns, rows);
        hr_json_put(to, type, strlen(type));
        fputs("}}\n", to);
    }
}

void script_cast_frame(script_cast *c, uint64_t time_ns)
{
    struct stat size;
    if (c->to == NULL || fflush(c->from) != 0 || fstat(fileno(c->from), &size) != 0 ||
        size.st_size <= c->taken) {
        return;
    }
    size_t count = (size_t)(size.st_size - c->taken);
    char *bytes = malloc(count);
    ssize_t got = bytes == NULL ? 0 : pread(fileno(c->from), bytes, count, c->taken);
    if (got > 0) {
        fprintf(c->to, "[%.6f, \"o\", ", (double)time_ns * 1e-9);
        hr_json_put(c->to, bytes, (size_t)got);
        fputs("]\n", c->to);
        c->taken += got;
    }
    free(bytes);
}
