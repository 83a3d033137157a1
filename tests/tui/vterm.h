// SPDX-License-Identifier: Apache-2.0
// A program in a terminal of our own: a pseudo terminal whose other end is libvterm, below a shell that does nothing but
// job control. What the program wrote is read as cells, and the modes that it left as a terminal would have them.
#ifndef TESTS_TUI_VTERM_H
#define TESTS_TUI_VTERM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <termios.h>

enum { VT_PRIVATE_MODES = 3000 }; // CSI ? N h switches mode N on

typedef struct vt_cell {
    uint32_t character;             // 0: nothing was written there
    int16_t foreground, background; // of the 256 colours, −1: the terminal's own
    bool bold, underline, reverse;
} vt_cell;

typedef struct vt_run vt_run;

typedef struct vt_setup {
    const char *const *command;     // argv, NULL at its end
    const char *const *environment; // "NAME=value", NULL at its end; NULL: none more than TERM
    const char *type;               // TERM; NULL: xterm-256color
    int rows, columns;
} vt_setup;

// Aborts the test when the machine cannot do it.
vt_run *vt_start(const vt_setup *setup);
// Hangs up: the program loses its terminal. Waits for it to end (and kills it when it does not); frees.
void vt_close(vt_run *v);

// ---- doing ----

void vt_type(vt_run *v, const char *bytes, size_t count);
void vt_resize(vt_run *v, int rows, int columns);
void vt_signal(vt_run *v, int number);                       // to the program alone
void vt_set_termios(vt_run *v, const struct termios *modes); // as another program would
void vt_foreground(vt_run *v);                               // what `fg` does

// ---- waiting: each takes what the program writes meanwhile; false after ten seconds ----

bool vt_shows(vt_run *v, const char *text);
// Each of `count` programs has written something since it had written so much.
bool vt_answered(vt_run *const *v, int count, const size_t *written);
// None of `count` programs wrote anything for so long.
bool vt_quiet(vt_run *const *v, int count, int milliseconds);
// The program has stopped or ended since the last call: its status as waitpid gives it.
bool vt_changed(vt_run *v, int *status);

// ---- reading ----

char *vt_text(const vt_run *v);     // rows without trailing blanks; the caller frees it
const vt_cell *vt_cells(vt_run *v); // rows × columns, valid until the next call
void vt_size(const vt_run *v, int *rows, int *columns);
bool vt_mode(const vt_run *v, int mode);
size_t vt_written(const vt_run *v);                // bytes so far
bool vt_wrote(const vt_run *v, const char *bytes); // at any time
const struct termios *vt_before(const vt_run *v);  // as the program found them
struct termios vt_termios(const vt_run *v);
pid_t vt_pid(const vt_run *v);
bool vt_has_ended(const vt_run *v);

// The cells that `bytes` make on an empty terminal, as vt_cells; the caller frees them.
vt_cell *vt_cells_of(const char *bytes, size_t count, int rows, int columns);

#endif
