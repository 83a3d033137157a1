// SPDX-License-Identifier: Apache-2.0
// hr.model: the model at hand as a table in the words of a preset, and a model from such a table. What builds it is the reader of
// presets itself: the table becomes YAML.
#include "headroom/model.h"

#include <string.h>

#include "app/lua/fields.h"
#include "app/lua/json.h"
#include "app/lua/script.h"

#define CALLER "hr.model"

static const char model_type[] = "hr.model";

static const hr_field layer_fields[] = {
    HR_FIELD(hr_model_layer, name, "name", NAME),
    HR_FIELD(hr_model_layer, kind, "kind", NAME),
    HR_FIELD(hr_model_layer, output_shape, "output_shape", NAME),
    HR_FIELD(hr_model_layer, parameters, "parameters", COUNT),
    HR_FIELD(hr_model_layer, parameter_bytes, "parameter_bytes", BYTES),
    HR_FIELD(hr_model_layer, output_bytes, "output_bytes", BYTES),
    HR_FIELD_END,
};

// ---- from the preset to a table -------------------------------------------------------------------------------------

// Names stay texts, also those that look like numbers.
static bool is_name(const hr_written *piece, const char *above)
{
    static const char *const keys[] = {"name", "kind", "input", "share", "index", "inputs"};
    const char *key = piece->key != NULL ? piece->key : above;
    for (size_t k = 0; key != NULL && k < sizeof keys / sizeof *keys; k++) {
        if (strcmp(keys[k], key) == 0) {
            return true;
        }
    }
    return false;
}

static void push_word(lua_State *L, const hr_written *piece, const char *above)
{
    static const char digits[] = "0123456789+-.eE";
    const bool plain = !piece->quoted && !is_name(piece, above);
    if (plain && (strcmp(piece->text, "true") == 0 || strcmp(piece->text, "false") == 0)) {
        lua_pushboolean(L, piece->text[0] == 't');
    } else if (!plain || strspn(piece->text, digits) != strlen(piece->text) ||
               lua_stringtonumber(L, piece->text) == 0) {
        lua_pushstring(L, piece->text);
    }
}

// Pushes the piece as it was written. `above` is the key that it stands under.
static void push_piece(lua_State *L, const hr_written *piece, const char *above)
{
    hr_written child;
    luaL_checkstack(L, 4, "a model");
    if (piece->kind == HR_WRITTEN_WORD) {
        push_word(L, piece, above);
        return;
    }
    lua_newtable(L);
    lua_Integer place = 0;
    for (bool any = hr_written_first(piece, &child); any; any = hr_written_next(&child)) {
        push_piece(L, &child, piece->key);
        if (child.key != NULL) {
            lua_setfield(L, -2, child.key);
        } else {
            lua_rawseti(L, -2, ++place);
        }
    }
}

// Sizes are knobs: what they are now.
static void set_sizes(lua_State *L, const hr_written *model, const hr_knobs *knobs)
{
    hr_written sizes, one;
    bool found = hr_written_first(model, &sizes);
    while (found && strcmp(sizes.key, "sizes") != 0) {
        found = hr_written_next(&sizes);
    }
    if (!found) {
        return;
    }
    lua_newtable(L);
    for (bool any = hr_written_first(&sizes, &one); any; any = hr_written_next(&one)) {
        char key[HR_NAME_MAX];
        (void)snprintf(key, sizeof key, "model.%.64s", one.key);
        const hr_knob_row *row = hr_knob_find(key, NULL);
        if (row != NULL) {
            lua_pushinteger(L, hr_knob_int(knobs, row->id));
            lua_setfield(L, -2, one.key);
        }
    }
    lua_setfield(L, -2, "sizes");
}

static void set_widths(lua_State *L, const hr_preset *preset)
{
    hr_written widths, one;
    for (uint32_t k = 0; hr_preset_written_widths(preset, k, &widths); k++) {
        (void)luaL_getsubtable(L, -1, "widths");
        for (bool any = hr_written_first(&widths, &one); any; any = hr_written_next(&one)) {
            push_piece(L, &one, NULL);
            lua_setfield(L, -2, one.key);
        }
        lua_pop(L, 1);
    }
}

// ---- what comes of it -----------------------------------------------------------------------------------------------

// Pushes the list of the layers.
static void push_figures(lua_State *L, const hr_knobs *knobs)
{
    script *s = script_of(L);
    hr_err err = {0};
    script_begin_engine(s);
    hr_model_layers_deinit(&s->layers);
    const hr_status status = hr_model_list_layers(s->preset, knobs, &s->layers, &err);
    script_end_engine(s);
    if (status != HR_OK) {
        (void)script_raise(L, &err);
    }
    lua_createtable(L, (int)s->layers.count, 0);
    for (size_t k = 0; k < s->layers.count; k++) {
        lua_createtable(L, 0, 6);
        script_set_fields(L, layer_fields, &s->layers.layers[k], NULL);
        script_guard_fields(L, layer_fields);
        lua_rawseti(L, -2, (lua_Integer)k + 1);
    }
}

// One line a layer, at 80 columns.
static void write_row(lua_State *L, int row, char line[128])
{
    static const char *const columns[] = {"name", "kind", "output_shape", "parameters", "output_bytes"};
    const char *text[sizeof columns / sizeof *columns];
    for (size_t k = 0; k < sizeof columns / sizeof *columns; k++) {
        (void)lua_getfield(L, row, columns[k]);
        text[k] = luaL_tolstring(L, -1, NULL);
    }
    (void)snprintf(line, 128, "\n%-22.22s %-16.16s %-16.16s %10.10s %12.12s", text[0], text[1], text[2],
                   text[3], text[4]);
    lua_settop(L, row - 1);
}

static int model_to_text(lua_State *L)
{
    char line[128];
    lua_settop(L, 1);
    (void)lua_getfield(L, 1, "figures");
    luaL_checktype(L, 2, LUA_TTABLE);
    (void)snprintf(line, sizeof line, "%-22s %-16s %-16s %10s %12s", "layer", "kind", "output", "parameters",
                   "output bytes");
    lua_newtable(L);
    script_add_piece(L, 3, line);
    const lua_Integer count = (lua_Integer)lua_rawlen(L, 2);
    for (lua_Integer k = 1; k <= count; k++) {
        lua_rawgeti(L, 2, k);
        write_row(L, lua_gettop(L), line);
        script_add_piece(L, 3, line);
    }
    (void)script_push_pieces(L, 3, &(size_t){0});
    return 1;
}

// __index: figures are no words of the model, so that the table can be given back as it is. Upvalue: the list.
static int get_figures(lua_State *L)
{
    const char *name = lua_type(L, 2) == LUA_TSTRING ? lua_tostring(L, 2) : "";
    if (strcmp(name, "figures") == 0) {
        lua_pushvalue(L, lua_upvalueindex(1));
    } else {
        lua_pushnil(L);
    }
    return 1;
}

// The table on top of the stack gets its figures.
static void give_figures(lua_State *L, const hr_knobs *knobs)
{
    lua_createtable(L, 0, 3);
    push_figures(L, knobs);
    lua_pushcclosure(L, get_figures, 1);
    lua_setfield(L, -2, "__index");
    lua_pushcfunction(L, model_to_text);
    lua_setfield(L, -2, "__tostring");
    lua_pushstring(L, model_type);
    lua_setfield(L, -2, "__metatable");
    lua_setmetatable(L, -2);
}

static int push_model(lua_State *L)
{
    const hr_knobs *knobs = script_current_knobs(L);
    const hr_preset *preset = script_of(L)->preset;
    hr_written model;
    if (!hr_preset_written(preset, &model)) {
        return script_error(L, "'%s' is a recorded step: it has no model", hr_preset_name(preset));
    }
    push_piece(L, &model, NULL);
    set_sizes(L, &model, knobs);
    set_widths(L, preset);
    give_figures(L, knobs);
    return 1;
}

// ---- from a table to the preset -------------------------------------------------------------------------------------

enum { MODEL = 1, WORDS, PIECES };

// The table without what stands beside the model's mapping in a preset.
static void push_words(lua_State *L)
{
    lua_newtable(L);
    lua_pushnil(L);
    while (lua_next(L, MODEL) != 0) {
        lua_pushvalue(L, -2);
        lua_insert(L, -2);
        lua_rawset(L, WORDS);
    }
    lua_pushnil(L);
    lua_setfield(L, WORDS, "widths");
}

static bool has_text(lua_State *L, const char *name, char text[HR_NAME_MAX])
{
    lua_pushstring(L, name);
    const bool has = lua_rawget(L, MODEL) == LUA_TSTRING;
    (void)snprintf(text, HR_NAME_MAX, "%.64s", has ? lua_tostring(L, -1) : "");
    lua_pop(L, 1);
    return has;
}

static void check_form(lua_State *L)
{
    lua_pushliteral(L, "layers");
    const bool layers = lua_rawget(L, MODEL) != LUA_TNIL;
    lua_pushliteral(L, "like");
    const bool like = lua_rawget(L, MODEL) != LUA_TNIL;
    lua_pop(L, 2);
    if (!layers && !like) {
        hr_err err = {0};
        (void)HR_FAIL(&err, LUA, "hr.model needs layers, or like = the name of a preset");
        hr_err_try(&err, "local m = hr.model(); change m.layers; hr.model(m). Sizes are knobs: "
                         "hr.knobs.model.depth = 12");
        (void)script_raise(L, &err);
    }
}

// Pushes the text of a preset.
static const char *push_preset(lua_State *L)
{
    size_t length = 0;
    push_words(L);
    lua_newtable(L);
    script_add_piece(L, PIECES, "model: ");
    script_add_yaml(L, PIECES, WORDS, CALLER);
    lua_pushliteral(L, "widths");
    if (lua_rawget(L, MODEL) != LUA_TNIL) {
        script_add_piece(L, PIECES, "\nwidths: ");
        script_add_yaml(L, PIECES, lua_gettop(L), CALLER);
    }
    script_add_piece(L, PIECES, "\n");
    return script_push_pieces(L, PIECES, &length);
}

// "recipes/small.yaml:1:20: layer 'conv1' (conv2d): …": the place is in a text that nobody has seen.
static void forget_place(const char *file, hr_err *err)
{
    const size_t length = strlen(file);
    char sentence[HR_ERR_TEXT_MAX];
    if (strncmp(err->sentence, file, length) != 0 || err->sentence[length] != ':') {
        return;
    }
    const char *at = err->sentence + length;
    const bool whole = at[1] == ' '; // "small.yaml: may have at most …"
    at += strspn(at, ":0123456789 ");
    (void)snprintf(sentence, sizeof sentence, "%s%s", whole ? "as the text of a preset the model " : "", at);
    memcpy(err->sentence, sentence, sizeof err->sentence);
    err->status = whole ? HR_LUA : err->status; // no file is at fault
    hr_err_try(err,
               "print(hr.model()) for a model that is right; headroom manual headroom-presets.5 has every "
               "kind of layer");
}

static hr_status open_words(const char *file, const char *words, hr_preset **out, hr_err *err)
{
    hr_status status = hr_preset_open_text(file, words, false, out, err);
    if (status == HR_OK) {
        status = hr_preset_check_model(*out, NULL, err);
    }
    if (status != HR_OK) {
        hr_preset_close(*out);
        *out = NULL;
        forget_place(file, err);
    }
    return status;
}

// The recipe's knobs stay, but for the sizes, which are the model's.
static void take_preset(script *s, hr_preset *preset)
{
    const hr_knobs *own = hr_preset_knobs(preset);
    hr_knobs knobs = s->preset != NULL ? s->knobs : *own;
    for (int id = 0; id < HR_KNOB_COUNT; id++) {
        if (hr_knob_is_size((hr_knob_id)id)) {
            knobs.value[id] = own->value[id];
        }
    }
    script_leave_host(s, "a model of its own");
    script_drop_training(s);
    hr_preset_close(s->preset);
    s->preset = preset;
    s->preset_number++;
    s->knobs = knobs;
}

static void build_model(lua_State *L)
{
    script *s = script_of(L);
    char name[HR_NAME_MAX], file[SCRIPT_PATH_MAX + HR_NAME_MAX];
    hr_preset *preset = NULL;
    hr_err err = {0};
    check_form(L);
    if (!has_text(L, "name", name) && !has_text(L, "like", name)) {
        (void)snprintf(name, sizeof name, "model");
    }
    const char *slash = strrchr(name, '/');
    (void)snprintf(file, sizeof file, "%s/%.64s.yaml", s->folder, slash == NULL ? name : slash + 1);
    const char *words = push_preset(L);
    script_begin_engine(s);
    const hr_status status = open_words(file, words, &preset, &err);
    if (status == HR_OK) {
        take_preset(s, preset);
    }
    script_end_engine(s);
    if (status != HR_OK) {
        (void)script_raise(L, &err);
    }
}

int script_model(lua_State *L)
{
    if (!lua_isnoneornil(L, MODEL)) {
        luaL_checktype(L, MODEL, LUA_TTABLE);
        lua_settop(L, MODEL);
        if (script_of(L)->engine != NULL) {
            return script_error(L, "hr.model within a run: the model cannot change between two steps");
        }
        build_model(L);
    }
    return push_model(L);
}
