// SPDX-License-Identifier: Apache-2.0
#include "app/tui/shell/script_keys.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "app/tui/shell/requests.h"
#include "app/tui/term/glyphs.h"

static const struct {
    const char *name;
    int key;
} names[] = {
    {"Tab", INPUT_TAB},      {"S-Tab", INPUT_BACK_TAB},
    {"Enter", INPUT_ENTER},  {"Esc", INPUT_ESCAPE},
    {"Space", ' '},          {"lt", '<'},
    {"Up", INPUT_UP},        {"Down", INPUT_DOWN},
    {"Left", INPUT_LEFT},    {"Right", INPUT_RIGHT},
    {"Home", INPUT_HOME},    {"End", INPUT_END},
    {"PgUp", INPUT_PAGE_UP}, {"PgDn", INPUT_PAGE_DOWN},
    {"BS", INPUT_BACKSPACE}, {"Del", INPUT_DELETE},
};

const char *script_key_names(void)
{
    return "<Tab> <S-Tab> <Enter> <Esc> <Space> <lt> <Up> <Down> <Left> <Right> <Home> <End> <PgUp> <PgDn> "
           "<BS> <Del> "
           "<C-a>";
}

// The key of "Right" or "C-u"; INPUT_RESIZED: none.
static int key_named(const char *name, size_t length)
{
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strlen(names[i].name) == length && strncasecmp(names[i].name, name, length) == 0) {
            return names[i].key;
        }
    }
    bool control = length == 3 && (name[0] == 'C' || name[0] == 'c') && name[1] == '-';
    int letter = control ? name[2] | 0x20 : 0;
    return letter >= 'a' && letter <= 'z' ? letter - 'a' + 1 : INPUT_RESIZED;
}

int script_key_next(const char **text)
{
    *text += strspn(*text, " \t");
    if (**text == '\0') {
        return INPUT_NONE;
    }
    const char *end = *text + 1 + strcspn(*text + 1, " <>");
    if (**text != '<' || *end != '>') {
        return (int)utf8_next(text);
    }
    int key = key_named(*text + 1, (size_t)(end - *text - 1));
    *text = end + 1;
    return key;
}

// ---- what a screen shows --------------------------------------------------------------------------------------

static bool is_blank_or_end(char c)
{
    return c == ' ' || c == '\n' || c == '\0';
}

// "shown" as a word of its own with a word behind it; with `attached`, that word right behind it.
static bool shows(const char *screen, const char *shown, const char *attached)
{
    size_t length = strlen(shown);
    for (const char *at = strstr(screen, shown); at != NULL; at = strstr(at + 1, shown)) {
        bool begins = at == screen || is_blank_or_end(at[-1]);
        const char *behind = at + length;
        if (attached != NULL && begins && strncmp(behind, attached, strlen(attached)) == 0) {
            return true;
        }
        if (attached == NULL && begins && behind[0] == ' ' && !is_blank_or_end(behind[1])) {
            return true;
        }
    }
    return false;
}

bool script_key_is_shown(const char *screen, int key)
{
    size_t count;
    const request_row *rows = request_rows(&count);
    request r = request_of_key(key);
    bool is_screen =
        (int)r >= (int)REQUEST_FIRST_SCREEN && (int)r < (int)REQUEST_FIRST_SCREEN + (int)SCREEN_COUNT;
    switch (key) {
    case INPUT_LEFT:
    case INPUT_RIGHT:
        return strstr(screen, "←→") != NULL;
    case INPUT_UP:
    case INPUT_DOWN:
        return strstr(screen, "↑↓") != NULL;
    default:
        break;
    }
    if (r == REQUEST_NONE) {
        return false;
    }
    return shows(screen, rows[r].shown, is_screen ? rows[r].name : NULL);
}
