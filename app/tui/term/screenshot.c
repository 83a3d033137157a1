// SPDX-License-Identifier: Apache-2.0
// The screen as text, with and without colours, and as a file.
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "headroom/files.h"

#include "app/tui/term/paint.h"

// ---- text -----------------------------------------------------------------------------------------------------

static bool same_style(style a, style b)
{
    return a.foreground == b.foreground && a.background == b.background && a.attributes == b.attributes;
}

static const style plain = {COLOR_DEFAULT, COLOR_DEFAULT, 0};

// A cell at the end of a line that need not be written.
static bool is_nothing(const drawn *d, bool colors)
{
    return d->glyph == L' ' && (!colors || (d->style.background == COLOR_DEFAULT &&
                                            (d->style.attributes & (STYLE_REVERSE | STYLE_UNDERLINE)) == 0));
}

static void write_style(FILE *out, style s)
{
    static const struct {
        unsigned attribute, code;
    } codes[] = {{STYLE_BOLD, 1}, {STYLE_DIM, 2}, {STYLE_UNDERLINE, 4}, {STYLE_REVERSE, 7}};
    fputs("\033[0", out);
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        if (s.attributes & codes[i].attribute) {
            fprintf(out, ";%u", codes[i].code);
        }
    }
    if (s.foreground != COLOR_DEFAULT) {
        fprintf(out, ";38;5;%d", s.foreground);
    }
    if (s.background != COLOR_DEFAULT) {
        fprintf(out, ";48;5;%d", s.background);
    }
    fputc('m', out);
}

static void write_row(FILE *out, int y, int columns, bool colors)
{
    style now = plain;
    int blanks = 0;
    for (int x = 0; x < columns;) {
        drawn d = paint_read(y, x);
        x += d.columns;
        if (is_nothing(&d, colors)) {
            blanks++;
            continue;
        }
        if (colors && blanks > 0 && !same_style(now, plain)) {
            write_style(out, plain);
            now = plain;
        }
        fprintf(out, "%*s", blanks, "");
        blanks = 0;
        if (colors && !same_style(now, d.style)) {
            write_style(out, d.style);
            now = d.style;
        }
        char text[4];
        fwrite(text, 1, utf8_put(d.glyph, text), out);
    }
    fputs(same_style(now, plain) ? "\n" : "\033[0m\n", out);
}

static bool write_screen(FILE *out, bool colors)
{
    int rows, columns;
    paint_size(&rows, &columns);
    for (int y = 0; y < rows; y++) {
        write_row(out, y, columns, colors);
    }
    return ferror(out) == 0;
}

bool paint_dump(FILE *out)
{
    return write_screen(out, false);
}

bool paint_dump_ansi(FILE *out)
{
    fputs(PAINT_ANSI_BEGIN, out);
    return write_screen(out, true);
}

// ---- files ----------------------------------------------------------------------------------------------------

typedef enum kind { KIND_TEXT, KIND_ANSI, KIND_SVG, KIND_COUNT } kind;

static const struct {
    const char *suffix;
    const char *mark; // in the first bytes of a file of this kind; of a text it is the last line
} kinds[KIND_COUNT] = {
    [KIND_TEXT] = {".txt", PAINT_TEXT_MARK},
    [KIND_ANSI] = {".ans", PAINT_ANSI_BEGIN},
    [KIND_SVG] = {".svg", PAINT_SVG_MARK},
};

static kind kind_of(const char *path)
{
    size_t length = strlen(path);
    for (int k = 0; k < KIND_COUNT; k++) {
        size_t suffix = strlen(kinds[k].suffix);
        if (length > suffix && strcmp(path + length - suffix, kinds[k].suffix) == 0 &&
            path[length - suffix - 1] != '/') {
            return (kind)k;
        }
    }
    return KIND_COUNT;
}

static bool has_mark(const char *path, kind k)
{
    char part[256] = "";
    const size_t length = strlen(kinds[k].mark);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0) {
        return false;
    }
    bool at_end = k == KIND_TEXT, reached = !at_end || lseek(fd, -(off_t)length, SEEK_END) >= 0;
    ssize_t got = reached ? read(fd, part, at_end ? length : sizeof part - 1) : -1;
    close(fd);
    return got > 0 && strstr(part, kinds[k].mark) != NULL;
}

// Whether something stands at `path`; an error when it may not be replaced.
static hr_status look_at(const char *path, kind k, bool replaces, bool *exists, hr_err *err)
{
    struct stat there;
    *exists = lstat(path, &there) == 0;
    if (!*exists) {
        return HR_OK;
    }
    if (S_ISREG(there.st_mode) && (replaces || has_mark(path, k))) {
        return HR_OK;
    }
    hr_status status =
        HR_FAIL(err, WRITE, "%s is there already and is not a screen saved as %s", path, kinds[k].suffix);
    hr_err_try(err, "another file name");
    return status;
}

static bool write_kind(const theme *t, kind k, FILE *out)
{
    switch (k) {
    case KIND_ANSI:
        return paint_dump_ansi(out);
    case KIND_SVG:
        return paint_dump_svg(t, out);
    case KIND_TEXT:
    case KIND_COUNT:
        break;
    }
    return paint_dump(out) && fputs(PAINT_TEXT_MARK, out) >= 0;
}

// The whole file; the caller frees it. NULL: host memory was short.
static char *screen_text(const theme *t, kind k, size_t *length)
{
    char *text = NULL;
    FILE *out = open_memstream(&text, length);
    if (out == NULL) {
        return NULL;
    }
    bool whole = write_kind(t, k, out);
    whole = fclose(out) == 0 && whole;
    if (!whole) {
        free(text);
        return NULL;
    }
    return text;
}

hr_status paint_save(const theme *t, const char *path, bool replaces, hr_err *err)
{
    kind k = kind_of(path);
    if (k == KIND_COUNT) {
        hr_status status = HR_FAIL(err, USAGE, "%s ends in none of .txt, .ans and .svg", path);
        hr_err_try(err, "%.400s.svg", path);
        return status;
    }
    bool exists;
    HR_TRY(look_at(path, k, replaces, &exists, err));
    size_t length = 0;
    char *text = screen_text(t, k, &length);
    if (text == NULL) {
        return HR_FAIL(err, NOMEM, "%s: no host memory to write it", path);
    }
    const hr_status status = hr_file_write(path, text, length, exists ? HR_FILE_REPLACES : HR_FILE_NEW, err);
    free(text);
    return status;
}
