// SPDX-License-Identifier: Apache-2.0
// Messages between our processes: a kind and a body of bytes, over a stream socket. Both sides are the same build, but
// neither trusts the other: a message longer than its limit, or of a kind beyond the table, ends the connection.
// Neither side ever blocks in here: what cannot be written is kept until the socket takes it.
#ifndef SESSION_WIRE_H
#define SESSION_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "headroom/status.h"

enum { WIRE_BODY_MAX = 256 << 20, WIRE_BACKLOG_MAX = 512 << 20 };

typedef struct wire_message {
    uint32_t kind;
    uint32_t bytes;
    const void *body; // borrowed until the next wire_read; 8-byte aligned
    int fd;           // that came with it (SCM_RIGHTS), the reader's to close; −1: none
} wire_message;

typedef struct wire wire; // one end

// Takes the socket (stream, any domain), makes it non-blocking and closes it at the end. `kinds`: messages of this or
// a higher kind are an offence. NOMEM.
HR_MUST_CHECK hr_status wire_create(int socket, uint32_t kinds, wire **out, hr_err *err);
void wire_destroy(wire *w); // NULL is fine

// The next whole message. False: none is here yet, or the connection has ended (wire_is_closed).
bool wire_read(wire *w, wire_message *message);
// Sends or keeps it. `fd` −1: none; it may be closed after the call. False: the backlog is full, or the other side takes
// nothing any more (what it has said may still be read).
bool wire_write(wire *w, uint32_t kind, const void *body, uint32_t bytes, int fd);
// Sends what was kept, as far as the socket takes it.
void wire_flush(wire *w);
int wire_fd(const wire *w);
short wire_events(const wire *w);   // POLLIN, with POLLOUT while something is kept
bool wire_is_closed(const wire *w); // by the other side, by an error or by an offence
bool wire_is_broken(const wire *w); // by an offence, or a message that this side could not hold

// ---- bodies ---------------------------------------------------------------------------------------------------

// Numbers are copied in the machine's own order; a text is its length and its bytes. Reading beyond the end, or a text
// that does not fit, sets `bad` and gives zeros.
typedef struct wire_out {
    uint8_t *data; // the caller's: wire_out_deinit
    size_t bytes, room;
    bool bad; // host memory was short, or it is longer than a message may be
} wire_out;

void wire_put(wire_out *o, const void *data, size_t bytes);
void wire_put_u32(wire_out *o, uint32_t value);
void wire_put_u64(wire_out *o, uint64_t value);
void wire_put_text(wire_out *o, const char *text); // NULL is ""
void wire_out_deinit(wire_out *o);                 // frees and empties it

typedef struct wire_in {
    const uint8_t *data;
    size_t bytes, at;
    bool bad;
} wire_in;

void wire_get(wire_in *in, void *data, size_t bytes);
uint32_t wire_get_u32(wire_in *in);
uint64_t wire_get_u64(wire_in *in);
void wire_get_text(wire_in *in, char *text, size_t size);
// Room for `count` records of `record_bytes` each that are yet to be read: checked against what is left before anything
// is allocated. NULL sets `bad`; a count of 0 gives NULL and is no offence. The caller's to hr_free.
void *wire_get_array(wire_in *in, uint64_t count, size_t record_bytes);

#endif
