// SPDX-License-Identifier: Apache-2.0
// What a person types at a console: an expression, whose values are shown, or statements.
#include <string.h>

#include "app/lua/script.h"

// A chunk behind as many empty lines as stand before it, and behind "return " where it is an expression.
typedef struct chunk_reader {
    uint32_t lines; // still to come
    const char *parts[2];
    size_t lengths[2];
    unsigned part;
} chunk_reader;

static const char *read_chunk(lua_State *L, void *context, size_t *length)
{
    static const char empty[] = "\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n";
    chunk_reader *r = context;
    (void)L;
    if (r->lines > 0) {
        *length = r->lines < sizeof empty - 1 ? r->lines : sizeof empty - 1;
        r->lines -= (uint32_t)*length;
        return empty;
    }
    while (r->part < 2 && r->lengths[r->part] == 0) {
        r->part++;
    }
    *length = r->part < 2 ? r->lengths[r->part] : 0;
    return r->part < 2 ? r->parts[r->part++] : NULL;
}

static int load_behind(lua_State *L, const char *before, const script_typed *typed)
{
    char name[SCRIPT_PATH_MAX];
    chunk_reader r = {.lines = typed->lines_before,
                      .parts = {before, typed->text},
                      .lengths = {strlen(before), typed->length}};
    (void)snprintf(name, sizeof name, "@%s", typed->name);
    return lua_load(L, read_chunk, &r, name, "t");
}

int script_load_typed(lua_State *L, const script_typed *typed)
{
    const size_t blank = strspn(typed->text, " \t\n");
    if (typed->text[blank] == '=') {
        script_typed behind = *typed;
        behind.text += blank + 1;
        behind.length -= blank + 1;
        for (size_t k = 0; k < blank; k++) {
            behind.lines_before += typed->text[k] == '\n';
        }
        return load_behind(L, "return ", &behind);
    }
    const int status = load_behind(L, "return ", typed);
    if (status == LUA_OK) {
        return status;
    }
    lua_pop(L, 1);
    return load_behind(L, "", typed);
}

bool script_ends_early(lua_State *L, int status)
{
    static const char end[] = "<eof>";
    size_t length = 0;
    const char *text = status == LUA_ERRSYNTAX ? lua_tolstring(L, -1, &length) : NULL;
    return text != NULL && length >= sizeof end - 1 && strcmp(text + length - (sizeof end - 1), end) == 0;
}

// Nothing of it runs: a state without libraries is enough.
bool script_is_whole(const char *text)
{
    const script_typed typed = {.name = SCRIPT_CONSOLE, .text = text, .length = strlen(text)};
    lua_State *L = luaL_newstate();
    const bool whole = L == NULL || !script_ends_early(L, script_load_typed(L, &typed));
    if (L != NULL) {
        lua_close(L);
    }
    return whole;
}
