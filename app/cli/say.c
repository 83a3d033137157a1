// SPDX-License-Identifier: Apache-2.0
#include "app/cli/say.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "headroom/report.h"
#include "headroom/words.h"

#include "app/cli/emit.h"
#include "app/cli/interrupt.h"
#include "app/tui/base/format.h"

enum { LINE_COLUMNS = 80 };

const char *say_framework(const hr_knobs *knobs)
{
    return hr_knob_is(knobs, HR_KNOB_EXECUTION_AS, "pytorch")      ? " as PyTorch"
           : hr_knob_is(knobs, HR_KNOB_EXECUTION_AS, "tensorflow") ? " as TensorFlow"
                                                                   : "";
}

// Columns of a UTF-8 word: its bytes without the continuation bytes.
static unsigned columns_of(const char *word, size_t bytes)
{
    unsigned columns = 0;
    for (size_t k = 0; k < bytes; k++) {
        columns += ((unsigned char)word[k] & 0xC0) != 0x80;
    }
    return columns;
}

// A line of an error, broken at blanks where it is longer than the terminal; what follows is indented.
static void put_broken(const char *line, size_t bytes, unsigned width)
{
    enum { INDENT = 2 };
    unsigned column = 0;
    for (size_t at = 0; at < bytes;) {
        const size_t blanks = strspn(line + at, " "), word = strcspn(line + at + blanks, " \n");
        const unsigned columns = columns_of(line + at, blanks + word);
        const bool below = column > INDENT && column + columns > width;
        const size_t from = below ? at + blanks : at;
        fprintf(stderr, "%s%.*s", below ? "\n  " : "", (int)(at + blanks + word - from), line + from);
        column = below ? INDENT + columns_of(line + from, word) : column + columns;
        at += blanks + word;
    }
    (void)putc('\n', stderr);
}

// What is there to be copied, a `try:`, stays a line: the terminal breaks it, and takes it whole.
static void put_lines(const char *lines, unsigned width)
{
    static const char hint[] = "  try: ";
    while (*lines != '\0') {
        const size_t bytes = strcspn(lines, "\n");
        if (width == 0 || strncmp(lines, hint, sizeof hint - 1) == 0) {
            fprintf(stderr, "%.*s\n", (int)bytes, lines);
        } else {
            put_broken(lines, bytes, width);
        }
        lines += bytes + (lines[bytes] == '\n');
    }
}

// 0: stderr is no terminal, or says no width.
static unsigned error_columns(void)
{
    enum { NARROWEST = 20 };
    struct winsize size = {0};
    const bool told = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
    return !told ? 0 : size.ws_col < NARROWEST ? NARROWEST : size.ws_col;
}

int say_error(const hr_err *err, bool is_json)
{
    char lines[2 * HR_ERR_TEXT_MAX + 64];
    (void)fflush(stdout);
    (void)hr_err_format(err, lines, sizeof lines);
    put_lines(hr_plain_text(lines, "\n"), error_columns());
    if (is_json) {
        emitter e = {.out = stdout};
        emit_object(&e, NULL);
        emit_text(&e, "schema", "headroom.error/1");
        emit_text(&e, "error", hr_status_what(err->status));
        emit_text(&e, "sentence", err->sentence);
        emit_text(&e, "try", err->hint[0] != '\0' ? err->hint : hr_status_try(err->status));
        emit_count(&e, "exit_code", (uint64_t)hr_status_exit_code(err->status));
        emit_end_object(&e);
    }
    return hr_status_exit_code(err->status);
}

void say_foreign(FILE *to, const char *text, const char *kept)
{
    for (const char *c = text; *c != '\0';) {
        const size_t bytes = hr_control_bytes(c, kept);
        (void)putc(bytes > 0 ? '?' : *c, to);
        c += bytes > 0 ? bytes : 1;
    }
}

// A word as say_foreign prints texts.
static void put_word(const char *word, size_t bytes)
{
    for (size_t k = 0; k < bytes;) {
        const size_t control = hr_control_bytes(word + k, "");
        (void)putchar(control > 0 ? '?' : word[k]);
        k += control > 0 ? control : 1;
    }
}

void say_word(FILE *to, const char *text)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./=,:+-@%";
    if (*text != '\0' && text[strspn(text, plain)] == '\0') {
        fputs(text, to);
        return;
    }
    fputc('\'', to);
    for (; *text != '\0'; text++) {
        if (*text == '\'') {
            fputs("'\\''", to);
        } else {
            say_foreign(to, (char[]){*text, '\0'}, "");
        }
    }
    fputc('\'', to);
}

void say_options(const char *pairs)
{
    for (const char *at = pairs; *at != '\0';) {
        const size_t length = strcspn(at, " ");
        printf("%s-s %.*s", at == pairs ? "" : " ", (int)length, at);
        at += length + (at[length] == ' ');
    }
}

int say_done(int exit_code)
{
    errno = 0;
    if (fflush(stdout) == 0 && ferror(stdout) == 0) {
        return exit_code;
    }
    const int ended = interrupt_exit_code(); // a terminal that has gone is no error after SIGHUP
    if (errno == EPIPE || ended == 128 + SIGPIPE || ended == 128 + SIGHUP) {
        return exit_code;
    }
    hr_err err;
    (void)HR_FAIL(&err, WRITE, "standard output: %s",
                  errno != 0 ? strerror(errno) : "a write before this one failed");
    return say_error(&err, false);
}

const char *say_count(uint64_t count, char text[SAY_COUNT_TEXT_MAX])
{
    char digits[24];
    char *to = text;
    if (count == HR_NONE) {
        return strcpy(text, "-");
    }
    int length = snprintf(digits, sizeof digits, "%" PRIu64, count);
    for (int k = 0; k < length; k++) {
        if (k > 0 && (length - k) % 3 == 0) {
            *to++ = ',';
        }
        *to++ = digits[k];
    }
    *to = '\0';
    return text;
}

const char *say_slower(const hr_knobs *knobs, char text[SAY_TRY_TEXT_MAX])
{
    (void)snprintf(text, SAY_TRY_TEXT_MAX, "-s optimizer.learning_rate=%g",
                   hr_knob_real(knobs, HR_KNOB_OPTIMIZER_LEARNING_RATE) / 10);
    return text;
}

void say_paragraph(const char *words, unsigned indent)
{
    unsigned column = indent;
    for (const char *word = words; *word != '\0';) {
        size_t bytes = strcspn(word, " \n");
        unsigned columns = columns_of(word, bytes);
        if (column > indent && column + 1 + columns > LINE_COLUMNS) {
            printf("\n%*s", (int)indent, "");
            column = indent;
        } else if (column > indent) {
            putchar(' ');
            column++;
        }
        put_word(word, bytes);
        column += columns;
        word += bytes;
        word += strspn(word, " \n");
    }
    putchar('\n');
}
