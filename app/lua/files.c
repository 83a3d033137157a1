// SPDX-License-Identifier: Apache-2.0
// What a recipe may open: it is untrusted, so it reads below its own folder, writes below
// ./headroom-out, and beyond that only what the person named on the command line.
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "app/lua/script.h"

enum { SOURCES_MAX = 64 };

static const char module_key[] = "headroom.modules"; // in the registry: name → what require gave back

// ---- chunks -------------------------------------------------------------------------------------------------------

static hr_status read_text(const char *path, char *text, size_t *length, hr_err *err)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        return HR_FAIL(err, READ, "%s: %s", path, strerror(errno));
    }
    *length = fread(text, 1, SCRIPT_SOURCE_BYTES_MAX + 1, file);
    int problem = ferror(file) ? errno : 0;
    (void)fclose(file);
    if (problem != 0) {
        return HR_FAIL(err, READ, "%s: %s", path, strerror(problem));
    }
    if (*length > SCRIPT_SOURCE_BYTES_MAX) {
        return HR_FAIL(err, READ, "%s: needed a recipe of at most 1 MiB, had more", path);
    }
    return HR_OK;
}

static hr_status fill_source(script_source *source, const char *path, hr_err *err)
{
    if ((size_t)snprintf(source->name, sizeof source->name, "%s", path) >= sizeof source->name) {
        return HR_FAIL(err, READ, "%.200s…: needed a name of at most %d characters", path,
                       SCRIPT_PATH_MAX - 1);
    }
    source->text = malloc(SCRIPT_SOURCE_BYTES_MAX + 1);
    if (source->text == NULL) {
        return HR_FAIL(err, NOMEM, "%s: no host memory to read it", path);
    }
    HR_TRY(read_text(path, source->text, &source->length, err));
    char *fitted = realloc(source->text, source->length + 1);
    source->text = fitted != NULL ? fitted : source->text;
    return HR_OK;
}

hr_status script_read_source(script *s, const char *path, const script_source **out, hr_err *err)
{
    if (s->source_count >= SOURCES_MAX) {
        return HR_FAIL(err, READ, "%s: a recipe has at most %d files", path, SOURCES_MAX);
    }
    script_source *source = calloc(1, sizeof *source);
    if (source == NULL) {
        return HR_FAIL(err, NOMEM, "%s: no host memory to read it", path);
    }
    hr_status status = fill_source(source, path, err);
    if (status != HR_OK) {
        free(source->text);
        free(source);
        return status;
    }
    source->next = s->sources;
    s->sources = source;
    s->source_count++;
    *out = source;
    return HR_OK;
}

hr_status script_add_source(script *s, const char *name, const char *text, const script_source **out,
                            hr_err *err)
{
    script_source *source = calloc(1, sizeof *source);
    char *copy = strdup(text);
    if (source == NULL || copy == NULL) {
        free(source);
        free(copy);
        return HR_FAIL(err, NOMEM, "%s: no host memory to keep it", name);
    }
    (void)snprintf(source->name, sizeof source->name, "%s", name);
    source->typed = true;
    source->text = copy;
    source->length = strlen(copy);
    source->next = s->sources;
    s->sources = source;
    *out = source;
    return HR_OK;
}

void script_drop_sources(script *s, unsigned kept)
{
    for (script_source **at = &s->sources; *at != NULL;) {
        script_source *gone = *at;
        const bool stays = !gone->typed || kept > 0;
        kept -= gone->typed && kept > 0;
        if (stays) {
            at = &gone->next;
            continue;
        }
        *at = gone->next;
        free(gone->text);
        free(gone);
    }
}

const script_source *script_find_source(const script *s, const char *name)
{
    const script_source *f = s->sources;
    while (f != NULL && strcmp(f->name, name) != 0) {
        f = f->next;
    }
    return f;
}

// A first line "#!…" is for the shell; its line break stays, so that lines keep their numbers.
int script_load_source(lua_State *L, const script_source *source)
{
    const char *text = source->text;
    size_t length = source->length;
    if (length > 0 && text[0] == '#') {
        const char *newline = memchr(text, '\n', length);
        size_t skipped = newline == NULL ? length : (size_t)(newline - text);
        text += skipped;
        length -= skipped;
    }
    const char *chunk_name = lua_pushfstring(L, "@%s", source->name);
    int status = luaL_loadbufferx(L, text, length, chunk_name, "t");
    lua_remove(L, -2);
    return status;
}

// ---- paths --------------------------------------------------------------------------------------------------------

bool script_was_typed(const script *s, const char *path)
{
    for (int k = 0; k < s->argc; k++) {
        if (strcmp(s->argv[k], path) == 0) {
            return true;
        }
    }
    return false;
}

static bool climbs(const char *path)
{
    bool up = path[0] == '/' || strcmp(path, "..") == 0 || strncmp(path, "../", 3) == 0;
    size_t length = strlen(path);
    return up || strstr(path, "/../") != NULL || (length >= 3 && strcmp(path + length - 3, "/..") == 0);
}

// Whether `path`, with its links followed, lies in `folder`. What does not exist lies there.
static bool lies_below(const char *path, const char *folder)
{
    char real_path[PATH_MAX], real_folder[PATH_MAX];
    if (realpath(path, real_path) == NULL) {
        return errno == ENOENT;
    }
    if (realpath(folder, real_folder) == NULL) {
        return false;
    }
    size_t length = strcmp(real_folder, "/") == 0 ? 0 : strlen(real_folder);
    return strncmp(real_path, real_folder, length) == 0 &&
           (real_path[length] == '/' || real_path[length] == '\0');
}

static hr_status refuse(const char *path, const char *needed, hr_err *err)
{
    hr_status status = HR_FAIL(err, LUA, "a recipe may not use '%s': needed a path below %s", path, needed);
    hr_err_try(err, "hand it over on the command line and use hr.args: headroom script FILE.lua '%s'", path);
    return status;
}

static hr_status join(const char *folder, const char *path, char out[SCRIPT_PATH_MAX], hr_err *err)
{
    bool bare = strcmp(folder, ".") == 0;
    int length = snprintf(out, SCRIPT_PATH_MAX, "%s%s%s", bare ? "" : folder, bare ? "" : "/", path);
    return length < SCRIPT_PATH_MAX ? HR_OK : HR_FAIL(err, READ, "%.200s…: the path is too long", path);
}

static hr_status join_out(const char *path, char out[SCRIPT_PATH_MAX], hr_err *err)
{
    static const char prefix[] = SCRIPT_OUT_FOLDER "/";
    const bool has_prefix = strncmp(path, prefix, sizeof prefix - 1) == 0;
    return join(has_prefix ? "." : SCRIPT_OUT_FOLDER, path, out, err);
}

// What a recipe wrote under this name.
static bool was_written(const char *path, char out[SCRIPT_PATH_MAX])
{
    struct stat info;
    return join_out(path, out, NULL) == HR_OK && lstat(SCRIPT_OUT_FOLDER, &info) == 0 &&
           S_ISDIR(info.st_mode) && access(out, F_OK) == 0 && lies_below(out, SCRIPT_OUT_FOLDER);
}

hr_status script_readable_path(const script *s, const char *path, char out[SCRIPT_PATH_MAX], hr_err *err)
{
    if (script_was_typed(s, path)) {
        return join(".", path, out, err);
    }
    if (climbs(path)) {
        return refuse(path, "its own folder", err);
    }
    if (was_written(path, out)) {
        return HR_OK;
    }
    HR_TRY(join(s->folder, path, out, err));
    return lies_below(out, s->folder) ? HR_OK : refuse(path, "its own folder", err);
}

hr_status script_check_below(const script *s, const char *path, hr_err *err)
{
    bool exists = access(path, F_OK) == 0;
    bool fine = script_was_typed(s, path) || (exists ? lies_below(path, s->folder) : !climbs(path));
    return fine ? HR_OK : refuse(path, "its own folder", err);
}

static hr_status make_out_folder(hr_err *err)
{
    struct stat info;
    if (mkdir(SCRIPT_OUT_FOLDER, 0777) != 0 && errno != EEXIST) {
        return HR_FAIL(err, WRITE, "%s: %s", SCRIPT_OUT_FOLDER, strerror(errno));
    }
    if (lstat(SCRIPT_OUT_FOLDER, &info) != 0 || !S_ISDIR(info.st_mode)) {
        return HR_FAIL(err, WRITE, "%s: needed a folder, had something else", SCRIPT_OUT_FOLDER);
    }
    return HR_OK;
}

hr_status script_writable_path(const script *s, const char *path, char out[SCRIPT_PATH_MAX], hr_err *err)
{
    if (script_was_typed(s, path)) {
        return join(".", path, out, err);
    }
    if (climbs(path)) {
        return refuse(path, "./" SCRIPT_OUT_FOLDER, err);
    }
    HR_TRY(join_out(path, out, err));
    HR_TRY(make_out_folder(err));
    char folder[SCRIPT_PATH_MAX];
    (void)snprintf(folder, sizeof folder, "%.*s", (int)(strrchr(out, '/') - out), out);
    return lies_below(folder, SCRIPT_OUT_FOLDER) && lies_below(out, SCRIPT_OUT_FOLDER)
               ? HR_OK
               : refuse(path, "./" SCRIPT_OUT_FOLDER, err);
}

// ---- require ------------------------------------------------------------------------------------------------------

static void module_path(lua_State *L, const char *name, char path[SCRIPT_PATH_MAX])
{
    size_t length = strlen(name);
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-";
    bool plain =
        length > 0 && strspn(name, letters) == length && strstr(name, "..") == NULL && name[0] != '.';
    if (!plain || length > LUA_IDSIZE) {
        (void)luaL_error(L, "require takes the name of a file below the recipe's folder, had '%s'", name);
    }
    for (size_t k = 0; k <= length; k++) {
        path[k] = name[k] == '.' ? '/' : name[k];
    }
    memcpy(path + length, ".lua", sizeof ".lua");
}

static void load_module(lua_State *L, const char *name)
{
    script *s = script_of(L);
    char relative[SCRIPT_PATH_MAX], path[SCRIPT_PATH_MAX];
    hr_err err = {0};
    const script_source *source = NULL;
    module_path(L, name, relative);
    if (script_readable_path(s, relative, path, &err) != HR_OK ||
        script_read_source(s, path, &source, &err) != HR_OK) {
        (void)script_raise(L, &err);
        return;
    }
    if (script_load_source(L, source) != LUA_OK) {
        (void)lua_error(L);
    }
}

// The module's value is kept under its name; while it loads, `false` stands there.
int script_require(lua_State *L)
{
    const char *name = luaL_checkstring(L, 1);
    lua_settop(L, 1);
    (void)luaL_getsubtable(L, LUA_REGISTRYINDEX, module_key);
    if (lua_getfield(L, 2, name) != LUA_TNIL) {
        if (!lua_toboolean(L, -1)) {
            return luaL_error(L, "module '%s' requires itself, or failed before", name);
        }
        return 1;
    }
    lua_pop(L, 1);
    load_module(L, name);
    lua_pushboolean(L, false);
    lua_setfield(L, 2, name);
    lua_pushvalue(L, 1);
    lua_call(L, 1, 1);
    if (!lua_toboolean(L, -1)) {
        lua_pop(L, 1);
        lua_pushboolean(L, true);
    }
    lua_pushvalue(L, -1);
    lua_setfield(L, 2, name);
    return 1;
}
