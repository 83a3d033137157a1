// SPDX-License-Identifier: Apache-2.0
#include "app/tui/shell/requests.h"

#include <string.h>

static const request_row rows[REQUEST_COUNT] = {
#define X(id, key, shown, name, line) [REQUEST_##id] = {key, shown, name, line},
    REQUEST_MAP(X)
#undef X
};

const request_row *request_rows(size_t *count)
{
    *count = REQUEST_COUNT;
    return rows;
}

// Beside the key of its row.
static const struct {
    int key;
    request request;
} also[] = {{'j', REQUEST_DOWN}, {'k', REQUEST_UP}, {'G', REQUEST_LAST}};

request request_of_key(int key)
{
    for (size_t i = 0; i < sizeof also / sizeof *also; i++) {
        if (also[i].key == key) {
            return also[i].request;
        }
    }
    for (size_t i = 0; i < REQUEST_COUNT; i++) {
        if (rows[i].key == key) {
            return (request)i;
        }
    }
    return REQUEST_NONE;
}

request request_of_name(const char *name)
{
    for (size_t i = 0; i < REQUEST_COUNT; i++) {
        if (strcmp(rows[i].name, name) == 0) {
            return (request)i;
        }
    }
    return REQUEST_NONE;
}
