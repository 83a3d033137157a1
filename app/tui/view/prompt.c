// SPDX-License-Identifier: Apache-2.0
#include "app/tui/view/prompt.h"

#include <stdio.h>
#include <string.h>

#include "app/tui/term/glyphs.h"
#include "app/tui/term/input.h"

enum { CTRL_A = 1, CTRL_E = 5, CTRL_H = 8, CTRL_K = 11, CTRL_U = 21, CTRL_W = 23 };

void prompt_begin(prompt *p, const char *text)
{
    snprintf(p->text, sizeof p->text, "%s", text);
    p->length = p->cursor = strlen(p->text);
    p->past_back = 0;
    p->selected = false;
    p->typed[0] = '\0';
}

void prompt_begin_selected(prompt *p, const char *text)
{
    prompt_begin(p, text);
    p->selected = p->length > 0;
}

static void erase(prompt *p, size_t from, size_t to)
{
    memmove(p->text + from, p->text + to, p->length - to + 1);
    p->length -= to - from;
    p->cursor = from;
}

static bool insert(prompt *p, const char *bytes, size_t count)
{
    if (p->length + count + 1 > sizeof p->text) {
        return false;
    }
    memmove(p->text + p->cursor + count, p->text + p->cursor, p->length - p->cursor + 1);
    memcpy(p->text + p->cursor, bytes, count);
    p->length += count;
    p->cursor += count;
    return true;
}

static bool insert_character(prompt *p, unsigned code)
{
    char bytes[4];
    size_t count = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    static const unsigned char leads[] = {0, 0, 0xc0, 0xe0, 0xf0};
    for (size_t i = count; i-- > 1; code >>= 6) {
        bytes[i] = (char)(0x80 | (code & 0x3f));
    }
    bytes[0] = (char)(leads[count] | code);
    return insert(p, bytes, count);
}

static bool continues(char byte)
{
    return ((unsigned char)byte & 0xc0) == 0x80;
}

static size_t before(const prompt *p, size_t at)
{
    while (at > 0 && continues(p->text[--at])) {
    }
    return at;
}

static size_t after(const prompt *p, size_t at)
{
    while (at < p->length && continues(p->text[++at])) {
    }
    return at;
}

static size_t word_before(const prompt *p)
{
    size_t at = p->cursor;
    while (at > 0 && p->text[at - 1] == ' ') {
        at--;
    }
    while (at > 0 && p->text[at - 1] != ' ') {
        at--;
    }
    return at;
}

// The end of the word after the cursor.
static size_t word_after(const prompt *p)
{
    size_t at = p->cursor;
    while (at < p->length && p->text[at] == ' ') {
        at++;
    }
    while (at < p->length && p->text[at] != ' ') {
        at++;
    }
    return at;
}

// ---- what was typed before ------------------------------------------------------------------------------------

size_t prompt_past(const prompt *p)
{
    return p->past_count < PROMPT_PAST ? p->past_count : PROMPT_PAST;
}

const char *prompt_past_line(const prompt *p, size_t index)
{
    return p->past[(p->past_count - prompt_past(p) + index) % PROMPT_PAST];
}

// The line shown stays what it is where nothing older, or newer, begins with what was typed.
static void recall(prompt *p, bool older)
{
    size_t held = prompt_past(p), back = p->past_back;
    char typed[PROMPT_MAX];
    memcpy(typed, back == 0 ? p->text : p->typed, sizeof typed);
    do {
        if (older ? back == held : back == 0) {
            return;
        }
        back = older ? back + 1 : back - 1;
    } while (back > 0 && (strncmp(prompt_past_line(p, held - back), typed, strlen(typed)) != 0 ||
                          strcmp(prompt_past_line(p, held - back), p->text) == 0));
    prompt_begin(p, back == 0 ? typed : prompt_past_line(p, held - back));
    memcpy(p->typed, typed, sizeof typed);
    p->past_back = back;
}

// ---- keys -----------------------------------------------------------------------------------------------------

static bool is_character(int key)
{
    return key >= ' ' && key < INPUT_BEYOND_UNICODE && key != INPUT_BACKSPACE;
}

static void settle_selection(prompt *p, int key)
{
    bool replaced = key == INPUT_BACKSPACE || key == CTRL_H || key == INPUT_DELETE || is_character(key);
    if (p->selected && replaced) {
        erase(p, 0, p->length);
    }
    p->selected = false;
}

bool prompt_key(prompt *p, int key)
{
    settle_selection(p, key);
    switch (key) {
    case INPUT_LEFT:
        p->cursor = before(p, p->cursor);
        return true;
    case INPUT_RIGHT:
        p->cursor = after(p, p->cursor);
        return true;
    case INPUT_WORD_LEFT:
        p->cursor = word_before(p);
        return true;
    case INPUT_WORD_RIGHT:
        p->cursor = word_after(p);
        return true;
    case INPUT_HOME:
    case CTRL_A:
        p->cursor = 0;
        return true;
    case INPUT_END:
    case CTRL_E:
        p->cursor = p->length;
        return true;
    case INPUT_BACKSPACE:
    case CTRL_H:
        erase(p, before(p, p->cursor), p->cursor);
        return true;
    case INPUT_DELETE:
        erase(p, p->cursor, after(p, p->cursor));
        return true;
    case CTRL_U:
        erase(p, 0, p->length);
        return true;
    case CTRL_K:
        erase(p, p->cursor, p->length);
        return true;
    case CTRL_W:
        erase(p, word_before(p), p->cursor);
        return true;
    case INPUT_UP:
    case INPUT_DOWN:
        recall(p, key == INPUT_UP);
        return true;
    default:
        return is_character(key) && insert_character(p, (unsigned)key);
    }
}

void prompt_paste(prompt *p, const char *text)
{
    bool blank = false;
    if (p->selected) {
        erase(p, 0, p->length);
        p->selected = false;
    }
    while (*text != '\0') {
        wchar_t c = utf8_next(&text);
        bool means_nothing = c == 0xfffd;
        if (!means_nothing || !blank) {
            (void)insert_character(p, means_nothing ? ' ' : (unsigned)c);
        }
        blank = means_nothing;
    }
}

void prompt_remember(prompt *p)
{
    size_t held = prompt_past(p);
    if (p->length > 0 && (held == 0 || strcmp(prompt_past_line(p, held - 1), p->text) != 0)) {
        memcpy(p->past[p->past_count++ % PROMPT_PAST], p->text, sizeof p->text);
    }
}

void prompt_complete(prompt *p, size_t word_start, const char *word)
{
    p->selected = false;
    erase(p, word_start, p->cursor);
    insert(p, word, strlen(word));
}
