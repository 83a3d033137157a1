// SPDX-License-Identifier: Apache-2.0
// The screen as ANSI, judged by libvterm; as a file; and text on its way to the clipboard.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "app/tui/term/terminal.h"
#include "tests/tui/screenshots.h"
#include "tests/tui/suite.h"
#include "tests/tui/vterm.h"

// ---- ANSI -----------------------------------------------------------------------------------------------------

// As the terminal driver does between a program and its terminal.
static screenshots with_returns(screenshots from)
{
    screenshots b = {.text = malloc(2 * from.count + 1)};
    for (size_t i = 0; i < from.count; i++) {
        if (from.text[i] == '\n') {
            b.text[b.count++] = '\r';
        }
        b.text[b.count++] = from.text[i];
    }
    free(from.text);
    return b;
}

static void same_cell(const drawn *d, const vt_cell *c, int y, int x)
{
    unsigned attributes = (c->bold ? STYLE_BOLD : 0u) | (c->underline ? STYLE_UNDERLINE : 0u) |
                          (c->reverse ? STYLE_REVERSE : 0u);
    bool blank = d->glyph == L' ';
    ck_assert_msg((wchar_t)c->character == d->glyph || (blank && c->character == 0), "%d:%d %x %x", y, x,
                  (unsigned)c->character, (unsigned)d->glyph);
    ck_assert_msg(c->background == d->style.background, "%d:%d background", y, x);
    if (!blank) {
        ck_assert_msg(c->foreground == d->style.foreground, "%d:%d foreground %d %d", y, x, c->foreground,
                      d->style.foreground);
        ck_assert_uint_eq(attributes, d->style.attributes & ~(unsigned)STYLE_DIM); // libvterm has no dim
    } else if (d->style.attributes & STYLE_REVERSE) {
        ck_assert(c->reverse);
    }
}

START_TEST(a_terminal_shows_the_saved_ansi_as_it_was)
{
    for (size_t i = 0; i < SCREENSHOT_LOOKS; i++) {
        app *a = screenshots_open_look(i);
        screenshots b = with_returns(screenshots_dump(NULL));
        vt_cell *cells = vt_cells_of(b.text, b.count, a->rows + 1, a->columns);
        for (int y = 0; y < a->rows; y++) {
            for (int x = 0; x < a->columns;) {
                drawn d = paint_read(y, x);
                same_cell(&d, &cells[y * a->columns + x], y, x);
                x += d.columns;
            }
        }
        free(cells);
        free(b.text);
        screen_close(a);
    }
}
END_TEST

// ---- files ----------------------------------------------------------------------------------------------------

static char folder[64];

static const char *path_of(const char *name)
{
    static char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static char *read_all(const char *name)
{
    FILE *in = fopen(path_of(name), "r");
    char *text = calloc(1, 1 << 20);
    ck_assert_ptr_nonnull(in);
    size_t got = fread(text, 1, (1 << 20) - 1, in);
    ck_assert(got < (1 << 20) - 1);
    fclose(in);
    return text;
}

static void write_all(const char *name, const char *text)
{
    FILE *out = fopen(path_of(name), "w");
    ck_assert(out != NULL && fputs(text, out) >= 0 && fclose(out) == 0);
}

static void refused(const theme *t, const char *name, hr_status status, const char *said)
{
    hr_err err = {0};
    ck_assert_int_eq(paint_save(t, path_of(name), false, &err), status);
    ck_assert_msg(strstr(err.sentence, said) != NULL, "%s", err.sentence);
}

static int count_files(void)
{
    char command[128];
    int count = -1;
    snprintf(command, sizeof command, "ls -A %s | wc -l", folder);
    FILE *in = popen(command, "r");
    ck_assert(in != NULL && fscanf(in, "%d", &count) == 1);
    pclose(in);
    return count;
}

static void open_folder(void)
{
    strcpy(folder, "/tmp/headroom-saved-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
}

static void remove_folder(void)
{
    char command[128];
    snprintf(command, sizeof command, "rm -r %s", folder);
    ck_assert_int_eq(system(command), 0);
}

START_TEST(saving_replaces_its_own_kind_and_nothing_else)
{
    theme t;
    hr_err err;
    open_folder();
    screenshots_open_page(&t, "dark");
    static const char *const names[] = {"a.svg", "a.ans", "a.txt"};
    for (size_t i = 0; i < 3; i++) {
        ck_assert_int_eq(paint_save(&t, path_of(names[i]), false, &err), HR_OK);
    }
    ck_assert_int_eq(paint_save(&t, path_of("a.svg"), false, &err), HR_OK);
    ck_assert_int_eq(paint_save(&t, path_of("a.ans"), false, &err), HR_OK);
    ck_assert_int_eq(paint_save(&t, path_of("a.txt"), false, &err), HR_OK);
    write_all("mine.txt", " headroom  demo\nof my own\n");
    refused(&t, "mine.txt", HR_WRITE, "is not a screen saved as .txt");
    write_all("mine.svg", "<svg>my drawing</svg>");
    write_all("mine.ans", "\033[31mmine\033[0m");
    write_all("empty.svg", "");
    refused(&t, "mine.svg", HR_WRITE, "is not a screen saved as .svg");
    refused(&t, "mine.ans", HR_WRITE, "is not a screen saved as .ans");
    refused(&t, "empty.svg", HR_WRITE, "is there already");
    char *mine = read_all("mine.svg");
    ck_assert_str_eq(mine, "<svg>my drawing</svg>");
    free(mine);
    ck_assert_int_eq(mkdir(path_of("folder.svg"), 0700), 0);
    refused(&t, "folder.svg", HR_WRITE, "is there already");
    char target[128];
    strcpy(target, path_of("a.svg"));
    ck_assert_int_eq(symlink(target, path_of("link.svg")), 0);
    refused(&t, "link.svg", HR_WRITE, "is there already");
    refused(&t, "none/a.svg", HR_WRITE, "No such file");
    refused(&t, "a.png", HR_USAGE, "ends in none of .txt, .ans and .svg");
    refused(&t, ".svg", HR_USAGE, "ends in none of");
    refused(&t, "", HR_USAGE, "ends in none of");
    ck_assert_int_eq(paint_save(&t, path_of("link.svg"), true, &err), HR_WRITE); // a file alone gives way
    ck_assert_int_eq(paint_save(&t, path_of("folder.svg"), true, &err), HR_WRITE);
    ck_assert_int_eq(paint_save(&t, path_of("mine.svg"), true, &err), HR_OK);
    mine = read_all("mine.svg");
    ck_assert_ptr_nonnull(strstr(mine, PAINT_SVG_MARK));
    free(mine);
    ck_assert_int_eq(count_files(), 9); // and no temporary ones
    screenshots_close_page();
    remove_folder();
}
END_TEST

// ---- clipboard ------------------------------------------------------------------------------------------------

// What terminal_copy writes on a terminal of that type.
static hr_status copied(const char *type, const char *text, screenshots *wrote, hr_err *err)
{
    FILE *out = tmpfile();
    ck_assert(out != NULL && terminal_open_on(type, out, out, 24, 80));
    fflush(out);
    off_t from = lseek(fileno(out), 0, SEEK_END);
    hr_status status = terminal_copy(text, err);
    off_t to = lseek(fileno(out), 0, SEEK_END);
    wrote->count = (size_t)(to - from);
    wrote->text = calloc(1, wrote->count + 1);
    ck_assert_int_eq(pread(fileno(out), wrote->text, wrote->count, from), (ssize_t)wrote->count);
    terminal_close_on();
    fclose(out);
    return status;
}

// RFC 4648 §4, read back digit by digit.
static char *decoded(const char *base64, size_t count)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    char *text = calloc(1, count + 1);
    size_t used = 0;
    unsigned held = 0, bits = 0;
    ck_assert_uint_eq(count % 4, 0);
    for (size_t i = 0; i < count && base64[i] != '='; i++) {
        const char *digit = strchr(digits, base64[i]);
        ck_assert_ptr_nonnull(digit);
        held = (held << 6 | (unsigned)(digit - digits)) & 0xffff;
        bits += 6;
        if (bits >= 8) {
            bits -= 8;
            text[used++] = (char)(held >> bits & 0xff);
        }
    }
    return text;
}

static void holds(const char *sequence, size_t count, const char *begin, const char *end, const char *text)
{
    size_t head = strlen(begin), tail = strlen(end);
    ck_assert_uint_gt(count, head + tail);
    ck_assert_mem_eq(sequence, begin, head);
    ck_assert_mem_eq(sequence + count - tail, end, tail);
    char *back = decoded(sequence + head, count - head - tail);
    ck_assert_str_eq(back, text);
    free(back);
}

START_TEST(what_is_copied_comes_back_from_the_clipboard)
{
    static const char *const texts[] = {"a", "ab", "abc", "512 MiB — für „dense/weights“\n2", "\x01\x7f~"};
    unsetenv("TMUX");
    unsetenv("STY");
    for (size_t i = 0; i < 5; i++) {
        screenshots b;
        ck_assert_int_eq(copied("xterm-256color", texts[i], &b, NULL), HR_OK);
        holds(b.text, b.count, "\033]52;c;", "\a", texts[i]);
        free(b.text);
        setenv("TMUX", "/tmp/tmux,1,0", 1);
        ck_assert_int_eq(copied("tmux-256color", texts[i], &b, NULL), HR_OK);
        const char *wrapped = strstr(b.text, "\033Ptmux;");
        ck_assert_ptr_nonnull(wrapped);
        holds(b.text, (size_t)(wrapped - b.text), "\033]52;c;", "\a", texts[i]);
        holds(wrapped, b.count - (size_t)(wrapped - b.text), "\033Ptmux;\033\033]52;c;", "\a\033\\",
              texts[i]);
        free(b.text);
        unsetenv("TMUX");
    }
}
END_TEST

START_TEST(screen_gets_pieces_that_it_hands_on)
{
    char text[3001] = "";
    screenshots b;
    for (int i = 0; i < 3000; i++) {
        text[i] = (char)('a' + i % 26);
    }
    unsetenv("TMUX");
    setenv("STY", "1.pts", 1);
    ck_assert_int_eq(copied("screen", text, &b, NULL), HR_OK);
    char *joined = calloc(1, b.count + 1);
    size_t used = 0;
    for (const char *at = b.text; *at != '\0';) { // as screen takes it apart
        const char *end = strstr(at, "\033\\");
        ck_assert(strncmp(at, "\033P", 2) == 0 && end != NULL && end - at <= 768);
        memcpy(joined + used, at + 2, (size_t)(end - at - 2));
        used += (size_t)(end - at - 2);
        at = end + 2;
    }
    holds(joined, used, "\033]52;c;", "\a", text);
    free(joined);
    free(b.text);
    unsetenv("STY");
}
END_TEST

START_TEST(what_cannot_be_copied_says_why)
{
    static char long_text[TERMINAL_COPY_MAX + 2];
    static const char *const consoles[] = {"linux", "vt100", "ansi"};
    hr_err err;
    screenshots b;
    memset(long_text, 'x', TERMINAL_COPY_MAX + 1);
    ck_assert_int_eq(copied("xterm", long_text, &b, &err), HR_TERMINAL);
    ck_assert_msg(strstr(err.sentence, "takes 74994 bytes, had 74995") != NULL, "%s", err.sentence);
    ck_assert_uint_eq(b.count, 0);
    free(b.text);
    long_text[TERMINAL_COPY_MAX] = '\0';
    ck_assert_int_eq(copied("xterm", long_text, &b, &err), HR_OK);
    ck_assert_uint_eq(b.count, 100000);
    free(b.text);
    ck_assert_int_eq(copied("xterm", "", &b, &err), HR_TERMINAL);
    free(b.text);
    for (size_t i = 0; i < 3; i++) {
        ck_assert_int_eq(copied(consoles[i], "text", &b, &err), HR_TERMINAL);
        ck_assert_msg(strstr(err.sentence, "has no clipboard") != NULL, "%s", err.sentence);
        ck_assert_uint_eq(b.count, 0);
        free(b.text);
    }
}
END_TEST

SUITE_MAIN("tui saved", a_terminal_shows_the_saved_ansi_as_it_was,
           saving_replaces_its_own_kind_and_nothing_else, what_is_copied_comes_back_from_the_clipboard,
           screen_gets_pieces_that_it_hands_on, what_cannot_be_copied_says_why)
