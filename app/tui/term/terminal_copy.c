// SPDX-License-Identifier: Apache-2.0
// Text for the clipboard: OSC 52, https://invisible-island.net/xterm/ctlseqs/ctlseqs.html, "Manipulate Selection Data".
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "app/tui/term/terminal_state.h"

// GNU screen hands a device control string on to the terminal behind it, at most 768 bytes of it.
enum { SCREEN_PIECE = 700 };

static void put_base64(FILE *out, const unsigned char *bytes, size_t count)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < count; i += 3) {
        size_t have = count - i < 3 ? count - i : 3;
        uint32_t group = (uint32_t)bytes[i] << 16;
        group |= have > 1 ? (uint32_t)bytes[i + 1] << 8 : 0;
        group |= have > 2 ? bytes[i + 2] : 0;
        for (size_t digit = 0; digit < 4; digit++) {
            fputc(digit <= have ? digits[group >> (18 - 6 * digit) & 63] : '=', out);
        }
    }
}

static void put_selection(FILE *out, const char *escape, const char *text)
{
    fprintf(out, "%s]52;c;", escape);
    put_base64(out, (const unsigned char *)text, strlen(text));
    fputc('\a', out);
}

// tmux takes the plain form when its set-clipboard is on, and hands on the wrapped one, whose escapes are doubled, when
// its allow-passthrough is (off by default since 3.3a). Both set the same text.
static void put_for_tmux(FILE *out, const char *text)
{
    put_selection(out, "\033", text);
    fputs("\033Ptmux;", out);
    put_selection(out, "\033\033", text);
    fputs("\033\\", out);
}

static bool put_for_screen(FILE *out, const char *text)
{
    char *whole = NULL;
    size_t bytes = 0;
    FILE *plain = open_memstream(&whole, &bytes);
    if (plain == NULL) {
        return false;
    }
    put_selection(plain, "\033", text);
    bool made = fclose(plain) == 0;
    for (size_t at = 0; made && at < bytes; at += SCREEN_PIECE) {
        size_t piece = bytes - at < SCREEN_PIECE ? bytes - at : SCREEN_PIECE;
        fputs("\033P", out);
        fwrite(whole + at, 1, piece, out);
        fputs("\033\\", out);
    }
    free(whole);
    return made;
}

static bool is_set(const char *variable)
{
    const char *value = getenv(variable);
    return value != NULL && value[0] != '\0';
}

static bool put_sequence(FILE *out, const char *text)
{
    if (is_set("TMUX")) {
        put_for_tmux(out, text);
        return true;
    }
    if (is_set("STY")) {
        return put_for_screen(out, text);
    }
    put_selection(out, "\033", text);
    return true;
}

static hr_status check_copy(const char *text, hr_err *err)
{
    size_t bytes = strlen(text);
    hr_status status = HR_OK;
    if (bytes == 0) {
        status = HR_FAIL(err, TERMINAL, "there is nothing to copy here");
        hr_err_try(err, "Tab to another pane");
    } else if (!terminal_now.can.clipboard) {
        status =
            HR_FAIL(err, TERMINAL, "TERM=%s has no clipboard that a program can reach", terminal_now.type);
        hr_err_try(err, "S to save the screen");
    } else if (bytes > TERMINAL_COPY_MAX) {
        status = HR_FAIL(err, TERMINAL, "copying: the clipboard takes %d bytes, had %zu", TERMINAL_COPY_MAX,
                         bytes);
        hr_err_try(err, "S to save the screen");
    }
    return status;
}

hr_status terminal_copy(const char *text, hr_err *err)
{
    HR_TRY(check_copy(text, err));
    char *sequence = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&sequence, &bytes);
    bool made = out != NULL && put_sequence(out, text);
    made = out != NULL && fclose(out) == 0 && made;
    if (made) {
        terminal_write(terminal_now.out, sequence, bytes);
    }
    free(sequence);
    return made ? HR_OK : HR_FAIL(err, NOMEM, "copying needed %zu bytes", 2 * strlen(text));
}
