// SPDX-License-Identifier: Apache-2.0
#include "app/lua/pattern.h"

#include <ctype.h>
#include <lauxlib.h>
#include <stdbool.h>
#include <string.h>

#include "app/lua/script.h"

enum { DEPTH_MAX = 200, BYTES_PER_WORK = 16 };

void pattern_init(pattern *m, lua_State *L, const char *subject, size_t subject_length,
                  const char *pattern_end)
{
    *m = (pattern){.L = L,
                   .begin = subject,
                   .end = subject + subject_length,
                   .pattern_end = pattern_end,
                   .work_left = PATTERN_WORK};
}

static void spend(pattern *m, size_t work)
{
    if (work < m->work_left) {
        m->work_left -= (unsigned)work;
        return;
    }
    m->work_left = PATTERN_WORK;
    script_check_stop(m->L);
}

// ---- single characters ------------------------------------------------------------------------------------------------

// The end of the item that begins at p: a letter, "%x" or a set.
static const char *item_end(pattern *m, const char *p)
{
    if (*p == '%') {
        if (p + 1 == m->pattern_end) {
            (void)luaL_error(m->L, "malformed pattern (ends with '%%')");
        }
        return p + 2;
    }
    if (*p != '[') {
        return p + 1;
    }
    p += p + 1 < m->pattern_end && p[1] == '^' ? 2 : 1;
    do { // the first character of a set may be its ']'
        if (p == m->pattern_end) {
            (void)luaL_error(m->L, "malformed pattern (missing ']')");
        }
        if (*p++ == '%' && p < m->pattern_end) {
            p++;
        }
    } while (*p != ']'); // a NUL stands behind the pattern
    return p + 1;
}

static bool class_has(int class_letter, int c)
{
    bool has = false;
    switch (tolower(class_letter)) {
    case 'a':
        has = isalpha(c);
        break;
    case 'c':
        has = iscntrl(c);
        break;
    case 'd':
        has = isdigit(c);
        break;
    case 'g':
        has = isgraph(c);
        break;
    case 'l':
        has = islower(c);
        break;
    case 'p':
        has = ispunct(c);
        break;
    case 's':
        has = isspace(c);
        break;
    case 'u':
        has = isupper(c);
        break;
    case 'w':
        has = isalnum(c);
        break;
    case 'x':
        has = isxdigit(c);
        break;
    case 'z': // from before patterns could hold zeros
        has = c == 0;
        break;
    default:
        return class_letter == c;
    }
    return isupper(class_letter) ? !has : has;
}

// Whether the set from '[' at p to ']' at `last` has c.
static bool set_has(const char *p, const char *last, int c)
{
    bool inverted = p[1] == '^';
    for (p += inverted ? 2 : 1; p < last; p++) {
        if (*p == '%') {
            p++;
            if (class_has((unsigned char)*p, c)) {
                return !inverted;
            }
        } else if (p[1] == '-' && p + 2 < last) {
            if ((unsigned char)p[0] <= c && c <= (unsigned char)p[2]) {
                return !inverted;
            }
            p += 2;
        } else if ((unsigned char)*p == c) {
            return !inverted;
        }
    }
    return inverted;
}

// Whether the item [p, ep) matches the character at s.
static bool item_has(pattern *m, const char *s, const char *p, const char *ep)
{
    if (s >= m->end) {
        return false;
    }
    int c = (unsigned char)*s;
    switch (*p) {
    case '.':
        spend(m, 1);
        return true;
    case '%':
        spend(m, 1);
        return class_has((unsigned char)p[1], c);
    case '[':
        spend(m, 1 + (size_t)(ep - p) / BYTES_PER_WORK);
        return set_has(p, ep - 1, c);
    default:
        spend(m, 1);
        return (unsigned char)*p == c;
    }
}

// ---- what is longer than a character ----------------------------------------------------------------------------------

static const char *match_here(pattern *m, const char *s, const char *p);

static const char *match_balance(pattern *m, const char *s, const char *p)
{
    if (p + 1 >= m->pattern_end) {
        (void)luaL_error(m->L, "malformed pattern (missing arguments to '%%b')");
    }
    if (s >= m->end || *s != p[0]) {
        return NULL;
    }
    int open = 1;
    for (s++; s < m->end; s++) {
        spend(m, 1);
        if (*s == p[1]) {
            if (--open == 0) {
                return s + 1;
            }
        } else if (*s == p[0]) {
            open++;
        }
    }
    return NULL;
}

// "item*" and "item+", whose first character matches: as many as possible, at least `least`.
static const char *match_most(pattern *m, const char *s, const char *p, const char *ep, ptrdiff_t least)
{
    ptrdiff_t count = 1;
    while (item_has(m, s + count, p, ep)) {
        count++;
    }
    for (; count >= least; count--) {
        const char *end = match_here(m, s + count, ep + 1);
        if (end != NULL) {
            return end;
        }
    }
    return NULL;
}

// "item-": as few as possible.
static const char *match_least(pattern *m, const char *s, const char *p, const char *ep)
{
    for (;; s++) {
        const char *end = match_here(m, s, ep + 1);
        if (end != NULL || !item_has(m, s, p, ep)) {
            return end;
        }
    }
}

static const char *open_capture(pattern *m, const char *s, const char *p, ptrdiff_t length)
{
    if (m->captures >= PATTERN_CAPTURES_MAX) {
        (void)luaL_error(m->L, "too many captures");
    }
    m->capture[m->captures++] = (pattern_capture){s, length};
    const char *end = match_here(m, s, p);
    m->captures -= end == NULL;
    return end;
}

static const char *close_capture(pattern *m, const char *s, const char *p)
{
    int k = m->captures - 1;
    while (k >= 0 && m->capture[k].length != PATTERN_OPEN) {
        k--;
    }
    if (k < 0) {
        (void)luaL_error(m->L, "invalid pattern capture");
        return NULL;
    }
    m->capture[k].length = s - m->capture[k].at;
    const char *end = match_here(m, s, p);
    if (end == NULL) {
        m->capture[k].length = PATTERN_OPEN;
    }
    return end;
}

static const char *match_again(pattern *m, const char *s, int digit)
{
    int k = digit - '1';
    if (k < 0 || k >= m->captures || m->capture[k].length == PATTERN_OPEN) {
        (void)luaL_error(m->L, "invalid capture index %%%d", k + 1);
    }
    size_t length = (size_t)m->capture[k].length; // a position is longer than any subject
    if ((size_t)(m->end - s) < length) {
        return NULL;
    }
    spend(m, 1 + length / BYTES_PER_WORK);
    return memcmp(m->capture[k].at, s, length) == 0 ? s + length : NULL;
}

// "%f[set]": the set begins here, and the character before is outside it.
static bool is_frontier(pattern *m, const char *s, const char *p, const char *ep)
{
    int before = s == m->begin ? '\0' : (unsigned char)s[-1];
    int here = (unsigned char)*s; // NUL behind the subject
    return !set_has(p, ep - 1, before) && set_has(p, ep - 1, here);
}

// ---- the pattern ------------------------------------------------------------------------------------------------------

// The items of a pattern that begin with '%' and are no class: true when *p was one. *s becomes NULL when it does not
// match, else both move behind it.
static bool match_special(pattern *m, const char **s, const char **p)
{
    const char *at = *p + 1;
    if (at[0] == 'b') {
        *s = match_balance(m, *s, at + 1);
        *p = at + 3;
    } else if (at[0] == 'f') {
        at++;
        if (*at != '[') {
            (void)luaL_error(m->L, "missing '[' after '%%f' in pattern");
        }
        const char *ep = item_end(m, at);
        *s = is_frontier(m, *s, at, ep) ? *s : NULL;
        *p = ep;
    } else if (isdigit((unsigned char)at[0])) {
        *s = match_again(m, *s, (unsigned char)at[0]);
        *p = at + 1;
    } else {
        return false;
    }
    return true;
}

// One item with its suffix. True: *s and *p moved on and the match goes on there; false: *s is the answer.
static bool match_item(pattern *m, const char **s, const char **p)
{
    const char *ep = item_end(m, *p);
    char suffix = ep < m->pattern_end ? *ep : '\0';
    const char *end = NULL;
    if (!item_has(m, *s, *p, ep)) {
        bool optional = suffix == '*' || suffix == '?' || suffix == '-';
        *s = optional ? *s : NULL;
        *p = ep + 1;
        return optional;
    }
    switch (suffix) {
    case '*':
    case '+':
        *s = match_most(m, *s, *p, ep, suffix == '+');
        return false;
    case '-':
        *s = match_least(m, *s, *p, ep);
        return false;
    case '?':
        end = match_here(m, *s + 1, ep + 1);
        *s = end != NULL ? end : *s;
        *p = ep + 1;
        return end == NULL;
    default:
        (*s)++;
        *p = ep;
        return true;
    }
}

static const char *match_from(pattern *m, const char *s, const char *p)
{
    while (p < m->pattern_end) {
        spend(m, 1);
        if (*p == '(') {
            bool position = p + 1 < m->pattern_end && p[1] == ')';
            return open_capture(m, s, p + (position ? 2 : 1), position ? PATTERN_POSITION : PATTERN_OPEN);
        }
        if (*p == ')') {
            return close_capture(m, s, p + 1);
        }
        if (*p == '$' && p + 1 == m->pattern_end) {
            return s == m->end ? s : NULL;
        }
        if (*p == '%' && p + 1 < m->pattern_end && match_special(m, &s, &p)) {
            if (s == NULL) {
                return NULL;
            }
        } else if (!match_item(m, &s, &p)) {
            return s;
        }
    }
    return s;
}

static const char *match_here(pattern *m, const char *s, const char *p)
{
    if (m->depth_left-- == 0) {
        (void)luaL_error(m->L, "pattern too complex");
    }
    const char *end = match_from(m, s, p);
    m->depth_left++;
    return end;
}

const char *pattern_match(pattern *m, const char *s, const char *p)
{
    spend(m, 1);
    m->captures = 0;
    m->depth_left = DEPTH_MAX;
    return match_here(m, s, p);
}

// ---- captures ---------------------------------------------------------------------------------------------------------

void pattern_push_capture(pattern *m, int k, const char *s, const char *e)
{
    if (k >= m->captures) {
        if (k != 0) {
            (void)luaL_error(m->L, "invalid capture index %%%d", k + 1);
        }
        lua_pushlstring(m->L, s, (size_t)(e - s));
    } else if (m->capture[k].length == PATTERN_OPEN) {
        (void)luaL_error(m->L, "unfinished capture");
    } else if (m->capture[k].length == PATTERN_POSITION) {
        lua_pushinteger(m->L, m->capture[k].at - m->begin + 1);
    } else {
        lua_pushlstring(m->L, m->capture[k].at, (size_t)m->capture[k].length);
    }
}

int pattern_push_captures(pattern *m, const char *s, const char *e)
{
    int count = m->captures == 0 && s != NULL ? 1 : m->captures;
    luaL_checkstack(m->L, count, "too many captures");
    for (int k = 0; k < count; k++) {
        pattern_push_capture(m, k, s, e);
    }
    return count;
}
