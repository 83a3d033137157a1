// SPDX-License-Identifier: Apache-2.0
#include "app/tui/prompt.h"

#include <stdio.h>
#include <string.h>

#include "app/tui/requests.h"

enum { CTRL_A = 1, CTRL_E = 5, CTRL_H = 8, CTRL_K = 11, CTRL_U = 21, CTRL_W = 23 };

void prompt_begin(prompt *p, const char *text)
{
    snprintf(p->text, sizeof p->text, "%s", text);
    p->length = p->cursor = strlen(p->text);
    p->past_back = 0;
    p->selected = false;
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

static void recall(prompt *p, bool older)
{
    size_t held = p->past_count < PROMPT_PAST ? p->past_count : PROMPT_PAST;
    size_t back = older ? p->past_back + 1 : p->past_back - 1;
    if ((older && back > held) || (!older && p->past_back == 0)) {
        return;
    }
    prompt_begin(p, back == 0 ? "" : p->past[(p->past_count - back) % PROMPT_PAST]);
    p->past_back = back;
}

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

void prompt_remember(prompt *p)
{
    if (p->length > 0) {
        memcpy(p->past[p->past_count++ % PROMPT_PAST], p->text, sizeof p->text);
    }
}

void prompt_complete(prompt *p, size_t word_start, const char *word)
{
    p->selected = false;
    erase(p, word_start, p->cursor);
    insert(p, word, strlen(word));
}
