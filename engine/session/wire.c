// SPDX-License-Identifier: Apache-2.0
// A message is a head of 16 bytes and its body. A head is received by itself, so that a descriptor, which the kernel
// hands over with the first byte it was sent with, can only come with the head that announces it.
#include "session/wire.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/host_mem.h"

enum {
    PIECE_BYTES = 64 << 10, // a body's room grows as its bytes come: a head alone takes no memory
    KEPT_ROOM_BYTES = 1 << 20,
    FDS_MAX = 8, // kept for sending
    FDS_RECEIVED_MAX = 4,
    HAS_FD = 1,
};

typedef struct head {
    uint32_t kind, bytes, flags, zero;
} head;

typedef struct kept_fd {
    size_t at; // of the head that it goes with, counted from the backlog's beginning
    int fd;
} kept_fd;

struct wire {
    int fd;
    uint32_t kinds;
    bool closed; // for reading, and then for all
    bool broken; // closed by an offence
    bool deaf;   // the other side takes nothing more; what it has said may still be read

    head head;
    size_t head_bytes; // of the head that have come
    uint8_t *body;
    size_t body_bytes, body_room;
    int came; // descriptor of the message at hand; −1: none

    uint8_t *backlog;
    size_t sent, kept, room; // backlog[sent..kept) waits
    kept_fd fds[FDS_MAX];
    uint32_t fd_count;
};

hr_status wire_create(int socket, uint32_t kinds, wire **out, hr_err *err)
{
    wire *w = hr_calloc(1, sizeof *w);
    *out = NULL;
    if (w == NULL) {
        (void)close(socket);
        return HR_FAIL(err, NOMEM, "no host memory for a connection");
    }
    *w = (wire){.fd = socket, .kinds = kinds, .came = -1};
    (void)fcntl(socket, F_SETFL, fcntl(socket, F_GETFL) | O_NONBLOCK);
    (void)fcntl(socket, F_SETFD, FD_CLOEXEC);
    *out = w;
    return HR_OK;
}

static void drop_fd(int *fd)
{
    if (*fd >= 0) {
        (void)close(*fd);
        *fd = -1;
    }
}

static void drop_backlog(wire *w)
{
    for (uint32_t k = 0; k < w->fd_count; k++) {
        drop_fd(&w->fds[k].fd);
    }
    w->fd_count = 0;
    w->sent = w->kept = w->room = 0;
    hr_free(w->backlog);
    w->backlog = NULL;
}

void wire_destroy(wire *w)
{
    if (w != NULL) {
        drop_backlog(w);
        drop_fd(&w->came);
        drop_fd(&w->fd);
        hr_free(w->body);
        hr_free(w);
    }
}

// ---- reading --------------------------------------------------------------------------------------------------

static void offend(wire *w)
{
    w->closed = w->broken = true;
    drop_backlog(w);
}

// Takes the descriptor out of what came; one that was not announced is closed, and an offence.
static void take_fds(wire *w, struct msghdr *message)
{
    bool offence = (message->msg_flags & MSG_CTRUNC) != 0;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c != NULL; c = CMSG_NXTHDR(message, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) {
            continue;
        }
        size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t k = 0; k < count; k++) {
            int fd = -1;
            memcpy(&fd, CMSG_DATA(c) + k * sizeof fd, sizeof fd);
            offence = offence || w->came >= 0;
            drop_fd(&w->came);
            w->came = fd;
        }
    }
    if (offence) {
        drop_fd(&w->came);
        offend(w);
    }
}

// How many bytes came; 0: none for now, or never again.
static size_t receive(wire *w, void *to, size_t bytes)
{
    union {
        char bytes[CMSG_SPACE(FDS_RECEIVED_MAX * sizeof(int))];
        struct cmsghdr align;
    } control;
    struct iovec piece = {.iov_base = to, .iov_len = bytes};
    struct msghdr message = {
        .msg_iov = &piece, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    ssize_t got = 0;
    do {
        got = recvmsg(w->fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    } while (got < 0 && errno == EINTR);
    if (got <= 0) {
        w->closed = w->closed || got == 0 || errno != EAGAIN;
        return 0;
    }
    take_fds(w, &message);
    return w->closed ? 0 : (size_t)got;
}

static bool head_is_valid(const wire *w)
{
    const head *h = &w->head;
    return h->kind < w->kinds && h->bytes <= WIRE_BODY_MAX && h->zero == 0 &&
           (h->flags & ~(uint32_t)HAS_FD) == 0 && (h->flags == HAS_FD) == (w->came >= 0);
}

static bool read_head(wire *w)
{
    while (w->head_bytes < sizeof w->head && !w->closed) {
        size_t got = receive(w, (uint8_t *)&w->head + w->head_bytes, sizeof w->head - w->head_bytes);
        if (got == 0) {
            return false;
        }
        w->head_bytes += got;
    }
    if (!w->closed && !head_is_valid(w)) {
        offend(w);
    }
    return !w->closed;
}

static bool make_room(wire *w)
{
    if (w->body_bytes < w->body_room) {
        return true;
    }
    size_t room = w->body_room < PIECE_BYTES ? PIECE_BYTES : 2 * w->body_room;
    uint8_t *body = hr_realloc(w->body, room, 1);
    if (body == NULL) {
        offend(w); // a message that cannot be held ends the connection: it must not be half taken
        return false;
    }
    w->body = body;
    w->body_room = room;
    return true;
}

static bool read_body(wire *w)
{
    while (w->body_bytes < w->head.bytes && !w->closed && make_room(w)) {
        size_t wanted = w->head.bytes - w->body_bytes, room = w->body_room - w->body_bytes;
        size_t got = receive(w, w->body + w->body_bytes, wanted < room ? wanted : room);
        if (w->came >= 0 && w->head.flags != HAS_FD) {
            offend(w);
        }
        if (got == 0) {
            return false;
        }
        w->body_bytes += got;
    }
    return !w->closed;
}

static void forget_large_body(wire *w)
{
    if (w->head_bytes == 0 && w->body_room > KEPT_ROOM_BYTES) {
        hr_free(w->body);
        w->body = NULL;
        w->body_room = 0;
    }
}

bool wire_read(wire *w, wire_message *message)
{
    forget_large_body(w);
    if (w->closed || !read_head(w) || !read_body(w)) {
        if (w->closed) {
            drop_fd(&w->came);
        }
        return false;
    }
    *message = (wire_message){.kind = w->head.kind, .bytes = w->head.bytes, .body = w->body, .fd = w->came};
    w->came = -1;
    w->head_bytes = w->body_bytes = 0;
    return true;
}

// ---- writing --------------------------------------------------------------------------------------------------

// Sends what it can of [data, data + bytes); the descriptor goes with the first byte. Returns how much went.
static size_t transmit(wire *w, const void *data, size_t bytes, int fd)
{
    union {
        char bytes[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } control = {.bytes = {0}};
    struct iovec piece = {.iov_len = bytes};
    memcpy(&piece.iov_base, &data, sizeof data); // sendmsg only reads it
    struct msghdr message = {.msg_iov = &piece, .msg_iovlen = 1};
    if (fd >= 0) {
        message.msg_control = &control;
        message.msg_controllen = sizeof control.bytes;
        struct cmsghdr *c = CMSG_FIRSTHDR(&message);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(sizeof fd);
        memcpy(CMSG_DATA(c), &fd, sizeof fd);
    }
    ssize_t sent = 0;
    do {
        sent = sendmsg(w->fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    } while (sent < 0 && errno == EINTR);
    if (sent < 0 && errno != EAGAIN) {
        w->deaf = true;
        drop_backlog(w);
    }
    return sent > 0 ? (size_t)sent : 0;
}

// Up to the next head that a descriptor goes with.
static size_t plain_bytes(const wire *w)
{
    uint32_t next = w->fd_count > 0 && w->fds[0].at == w->sent ? 1 : 0;
    return (next < w->fd_count ? w->fds[next].at : w->kept) - w->sent;
}

void wire_flush(wire *w)
{
    while (w->sent < w->kept && !w->deaf) {
        bool with_fd = w->fd_count > 0 && w->fds[0].at == w->sent;
        size_t went = transmit(w, w->backlog + w->sent, plain_bytes(w), with_fd ? w->fds[0].fd : -1);
        if (went == 0) {
            return;
        }
        if (with_fd) {
            drop_fd(&w->fds[0].fd);
            memmove(w->fds, w->fds + 1, --w->fd_count * sizeof *w->fds);
        }
        w->sent += went;
    }
    if (w->sent == w->kept) {
        w->sent = w->kept = 0;
        if (w->room > KEPT_ROOM_BYTES) {
            drop_backlog(w);
        }
    }
}

// What was sent makes room for what is kept next.
static void close_up(wire *w)
{
    if (w->sent > 0) {
        memmove(w->backlog, w->backlog + w->sent, w->kept - w->sent);
        for (uint32_t k = 0; k < w->fd_count; k++) {
            w->fds[k].at -= w->sent;
        }
        w->kept -= w->sent;
        w->sent = 0;
    }
}

static bool grow_backlog(wire *w, size_t more)
{
    size_t room = w->room < PIECE_BYTES ? PIECE_BYTES : w->room;
    if (w->kept + more > WIRE_BACKLOG_MAX) {
        return false;
    }
    while (room < w->kept + more) {
        room *= 2;
    }
    uint8_t *backlog = room == w->room ? w->backlog : hr_realloc(w->backlog, room, 1);
    if (backlog == NULL) {
        return false;
    }
    w->backlog = backlog;
    w->room = room;
    return true;
}

static bool keep_fd(wire *w, int fd)
{
    int copy = w->fd_count < FDS_MAX ? fcntl(fd, F_DUPFD_CLOEXEC, 0) : -1;
    if (copy >= 0) {
        w->fds[w->fd_count++] = (kept_fd){.at = w->kept, .fd = copy};
    }
    return copy >= 0;
}

bool wire_write(wire *w, uint32_t kind, const void *body, uint32_t bytes, int fd)
{
    const head h = {.kind = kind, .bytes = bytes, .flags = fd >= 0 ? HAS_FD : 0};
    if (w->closed || w->deaf || bytes > WIRE_BODY_MAX) {
        return false;
    }
    close_up(w);
    if (!grow_backlog(w, sizeof h + bytes) || (fd >= 0 && !keep_fd(w, fd))) {
        return false;
    }
    memcpy(w->backlog + w->kept, &h, sizeof h);
    if (bytes > 0) {
        memcpy(w->backlog + w->kept + sizeof h, body, bytes);
    }
    w->kept += sizeof h + bytes;
    wire_flush(w);
    return !w->deaf;
}

int wire_fd(const wire *w)
{
    return w->fd;
}

short wire_events(const wire *w)
{
    return (short)(POLLIN | (w->sent < w->kept ? POLLOUT : 0));
}

bool wire_is_closed(const wire *w)
{
    return w->closed;
}

bool wire_is_broken(const wire *w)
{
    return w->broken;
}
