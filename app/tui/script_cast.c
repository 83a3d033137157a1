// SPDX-License-Identifier: Apache-2.0
#include "app/tui/script_cast.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static void put_string(FILE *out, const unsigned char *bytes, size_t count)
{
    fputc('"', out);
    for (size_t i = 0; i < count; i++) {
        if (bytes[i] == '"' || bytes[i] == '\\') {
            fprintf(out, "\\%c", bytes[i]);
        } else if (bytes[i] < 0x20 || bytes[i] == 0x7f) {
            fprintf(out, "\\u%04x", bytes[i]);
        } else {
            fputc(bytes[i], out); // UTF-8 stays
        }
    }
    fputc('"', out);
}

void script_cast_begin(script_cast *c, FILE *from, FILE *to, int rows, int columns, const char *type)
{
    *c = (script_cast){.from = from, .to = to};
    if (to != NULL) {
        fprintf(to, "{\"version\": 2, \"width\": %d, \"height\": %d, \"env\": {\"TERM\": \"%s\"}}\n", columns,
                rows, type);
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
    unsigned char *bytes = malloc(count);
    ssize_t got = bytes == NULL ? 0 : pread(fileno(c->from), bytes, count, c->taken);
    if (got > 0) {
        fprintf(c->to, "[%.6f, \"o\", ", (double)time_ns * 1e-9);
        put_string(c->to, bytes, (size_t)got);
        fputs("]\n", c->to);
        c->taken += got;
    }
    free(bytes);
}
