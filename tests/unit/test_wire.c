// SPDX-License-Identifier: Apache-2.0
// Messages between processes: all arrive, whole and in order, however the socket cuts them; descriptors come with
// their message; whatever breaks a rule ends the connection and leaves nothing open.
#include <check.h>
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/host_mem.h"
#include "session/wire.h"

enum { KINDS = 5, HEAD_BYTES = 16 };

typedef struct pair {
    wire *a, *b;
} pair;

static uint64_t dice;

static uint32_t roll(uint32_t below)
{
    dice = dice * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(dice >> 33) % below;
}

static int open_fds(void)
{
    int count = 0;
    DIR *folder = opendir("/proc/self/fd");
    while (readdir(folder) != NULL) {
        count++;
    }
    closedir(folder);
    return count;
}

static wire *wire_of(int socket)
{
    wire *w = NULL;
    ck_assert_int_eq(wire_create(socket, KINDS, &w, NULL), HR_OK);
    return w;
}

static pair make_pair(void)
{
    int ends[2];
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    return (pair){wire_of(ends[0]), wire_of(ends[1])};
}

static void end_pair(pair *p)
{
    wire_destroy(p->a);
    wire_destroy(p->b);
}

static uint8_t byte_of(uint32_t message, uint32_t k)
{
    return (uint8_t)(message * 31 + k * 7 + (k >> 8));
}

static void send_numbered(wire *w, uint32_t number, uint32_t bytes, int fd)
{
    uint8_t *body = malloc(bytes + 1);
    for (uint32_t k = 0; k < bytes; k++) {
        body[k] = byte_of(number, k);
    }
    ck_assert(wire_write(w, number % KINDS, body, bytes, fd));
    free(body);
}

static void check_numbered(const wire_message *m, uint32_t number, uint32_t bytes)
{
    ck_assert_uint_eq(m->kind, number % KINDS);
    ck_assert_uint_eq(m->bytes, bytes);
    ck_assert_uint_eq((uintptr_t)m->body % 8, 0);
    bool right = true;
    for (uint32_t k = 0; k < bytes; k++) {
        right = right && ((const uint8_t *)m->body)[k] == byte_of(number, k);
    }
    ck_assert(right);
}

// A file whose size says which message it belongs to.
static int file_of(uint32_t number)
{
    int fd = memfd_create("wire", MFD_CLOEXEC);
    ck_assert_int_eq(ftruncate(fd, number + 1), 0);
    return fd;
}

static bool has_fd(uint32_t number)
{
    return number % 17 == 3;
}

static void check_file(int fd, uint32_t number)
{
    struct stat info;
    ck_assert_int_eq(fd >= 0, has_fd(number));
    if (fd >= 0) {
        ck_assert_int_eq(fstat(fd, &info), 0);
        ck_assert_int_eq(info.st_size, number + 1);
        close(fd);
    }
}

// Several messages are under way at once, small and large, some with a file; both ends do what poll would tell them.
START_TEST(messages_and_files_arrive_whole_and_in_order)
{
    enum { MESSAGES = 300 };
    uint32_t sizes[MESSAGES], sent = 0, read = 0;
    int before = open_fds();
    dice = (uint64_t)_i;
    pair p = make_pair();
    while (read < MESSAGES) {
        for (uint32_t k = roll(6); k > 0 && sent < MESSAGES; k--) {
            sizes[sent] = roll(4) == 0 ? roll(700000) : roll(40);
            int fd = has_fd(sent) ? file_of(sent) : -1;
            send_numbered(p.a, sent, sizes[sent], fd);
            if (fd >= 0) {
                close(fd);
            }
            sent++;
        }
        wire_flush(p.a);
        wire_message m;
        while (wire_read(p.b, &m)) {
            check_numbered(&m, read, sizes[read]);
            check_file(m.fd, read++);
        }
        ck_assert(!wire_is_closed(p.b));
        ck_assert_int_eq(wire_events(p.b), POLLIN);
    }
    ck_assert_int_eq(wire_events(p.a), POLLIN);
    end_pair(&p);
    ck_assert_int_eq(open_fds(), before);
}
END_TEST

START_TEST(what_was_said_is_read_after_the_end)
{
    pair p = make_pair();
    wire_message m;
    send_numbered(p.a, 1, 10, -1);
    send_numbered(p.b, 2, 10, -1); // never read: the other side's end is then an error, not an end of file
    wire_destroy(p.a);
    p.a = NULL;
    ck_assert(!wire_write(p.b, 0, NULL, 0, -1));
    ck_assert(wire_read(p.b, &m));
    check_numbered(&m, 1, 10);
    ck_assert(!wire_read(p.b, &m));
    ck_assert(wire_is_closed(p.b));
    end_pair(&p);
}
END_TEST

START_TEST(a_writer_without_a_reader_keeps_up_to_its_limit)
{
    int before = open_fds();
    pair p = make_pair();
    uint32_t bytes = 64 << 20, taken = 0;
    uint8_t *body = calloc(1, bytes);
    while (wire_write(p.a, 0, body, bytes, -1)) {
        taken++;
    }
    ck_assert_uint_ge(taken, 7);
    ck_assert_uint_le(taken, 8);
    ck_assert_int_eq(wire_events(p.a), POLLIN | POLLOUT);
    free(body);
    end_pair(&p);
    ck_assert_int_eq(open_fds(), before);
}
END_TEST

static void send_raw(int socket, const void *data, size_t bytes, int fd)
{
    char control[CMSG_SPACE(sizeof fd)] = {0};
    char copy[256];
    ck_assert_uint_le(bytes, sizeof copy);
    memcpy(copy, data, bytes);
    struct iovec piece = {.iov_base = copy, .iov_len = bytes};
    struct msghdr m = {.msg_iov = &piece, .msg_iovlen = 1};
    if (fd >= 0) {
        m.msg_control = control;
        m.msg_controllen = sizeof control;
        struct cmsghdr *c = CMSG_FIRSTHDR(&m);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(sizeof fd);
        memcpy(CMSG_DATA(c), &fd, sizeof fd);
    }
    ck_assert_int_eq(sendmsg(socket, &m, MSG_NOSIGNAL), (ssize_t)bytes);
}

START_TEST(a_head_against_the_rules_ends_the_connection)
{
    static const struct {
        uint32_t head[4];
        bool fd;
    } cases[] = {
        {{KINDS, 0, 0, 0}, false},      {{UINT32_MAX, 0, 0, 0}, false}, {{0, WIRE_BODY_MAX + 1, 0, 0}, false},
        {{0, UINT32_MAX, 0, 0}, false}, {{0, 0, 2, 0}, false},          {{0, 0, 0, 1}, false},
        {{0, 0, 1, 0}, false},          {{0, 0, 0, 0}, true},
    };
    int ends[2], before = open_fds();
    wire_message m;
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    wire *w = wire_of(ends[1]);
    int fd = cases[_i].fd ? file_of(0) : -1;
    send_raw(ends[0], cases[_i].head, HEAD_BYTES, fd);
    ck_assert(!wire_read(w, &m));
    ck_assert(wire_is_closed(w));
    ck_assert(!wire_write(w, 0, NULL, 0, -1));
    wire_destroy(w);
    close(ends[0]);
    if (fd >= 0) {
        close(fd);
    }
    ck_assert_int_eq(open_fds(), before);
}
END_TEST

// A body that was announced and never comes must not take its room.
START_TEST(an_announced_body_takes_no_memory_before_it_comes)
{
    const uint32_t head[4] = {0, WIRE_BODY_MAX, 0, 0};
    int ends[2];
    wire_message m;
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    wire *w = wire_of(ends[1]);
    send_raw(ends[0], head, HEAD_BYTES, -1);
    (void)hr_host_mem_fail_at(2); // one request is the first piece
    ck_assert(!wire_read(w, &m));
    ck_assert_uint_le(hr_host_mem_fail_at(0), 1);
    ck_assert(!wire_is_closed(w));
    wire_destroy(w);
    close(ends[0]);
}
END_TEST

START_TEST(a_file_in_the_middle_of_a_body_ends_the_connection)
{
    const uint32_t head[4] = {0, 8, 0, 0};
    int ends[2], before = open_fds(), fd = file_of(1);
    wire_message m;
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    wire *w = wire_of(ends[1]);
    send_raw(ends[0], head, HEAD_BYTES, -1);
    send_raw(ends[0], "1234", 4, fd);
    ck_assert(!wire_read(w, &m));
    ck_assert(wire_is_closed(w));
    wire_destroy(w);
    close(ends[0]);
    close(fd);
    ck_assert_int_eq(open_fds(), before);
}
END_TEST

START_TEST(short_memory_is_an_error_or_an_end)
{
    int ends[2];
    wire *w = NULL;
    int before = open_fds();
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    close(ends[1]);
    (void)hr_host_mem_fail_at(1);
    ck_assert_int_eq(wire_create(ends[0], KINDS, &w, NULL), HR_NOMEM);
    ck_assert_ptr_null(w);
    pair p = make_pair();
    wire_message m;
    (void)hr_host_mem_fail_at(1);
    ck_assert(!wire_write(p.a, 0, "x", 1, -1));
    (void)hr_host_mem_fail_at(0);
    ck_assert(wire_write(p.a, 0, "x", 1, -1));
    (void)hr_host_mem_fail_at(1);
    ck_assert(!wire_read(p.b, &m));
    (void)hr_host_mem_fail_at(0);
    ck_assert(wire_is_closed(p.b));
    end_pair(&p);
    ck_assert_int_eq(open_fds(), before);
}
END_TEST

// ---- bodies ---------------------------------------------------------------------------------------------------

static wire_out sample_body(void)
{
    wire_out o = {0};
    const double real = 0.25;
    wire_put_u32(&o, 7);
    wire_put_text(&o, "conv1/weights");
    wire_put_u64(&o, UINT64_C(1) << 40);
    wire_put_text(&o, NULL);
    wire_put(&o, &real, sizeof real);
    return o;
}

static bool read_sample(wire_in *in)
{
    char name[16], nothing[1];
    double real = 0;
    bool right = wire_get_u32(in) == 7;
    wire_get_text(in, name, sizeof name);
    right = wire_get_u64(in) == UINT64_C(1) << 40 && strcmp(name, "conv1/weights") == 0 && right;
    wire_get_text(in, nothing, sizeof nothing);
    wire_get(in, &real, sizeof real);
    return right && nothing[0] == '\0' && real == 0.25;
}

START_TEST(a_body_cut_anywhere_is_bad_and_its_rest_is_zero)
{
    wire_out o = sample_body();
    for (size_t bytes = 0; bytes <= o.bytes; bytes++) {
        uint8_t *exact = malloc(bytes + 1); // so that a sanitizer sees a byte too many
        memcpy(exact, o.data, bytes);
        exact = realloc(exact, bytes > 0 ? bytes : 1);
        wire_in in = {.data = exact, .bytes = bytes};
        bool right = read_sample(&in);
        ck_assert_int_eq(right, bytes == o.bytes);
        ck_assert_int_eq(in.bad, bytes != o.bytes);
        ck_assert(bytes == o.bytes || wire_get_u64(&in) == 0);
        free(exact);
    }
    wire_out_deinit(&o);
    ck_assert_ptr_null(o.data);
}
END_TEST

START_TEST(texts_that_do_not_fit_or_end_early_are_bad)
{
    char text[4] = "zzz";
    wire_out o = {0};
    wire_put_text(&o, "four");
    wire_put_u32(&o, 3);
    wire_put(&o, "a\0b", 3);
    wire_in in = {.data = o.data, .bytes = o.bytes};
    wire_get_text(&in, text, sizeof text);
    ck_assert(in.bad);
    ck_assert_str_eq(text, "");
    in = (wire_in){.data = o.data + 8, .bytes = o.bytes - 8};
    wire_get_text(&in, text, sizeof text);
    ck_assert(in.bad);
    ck_assert_str_eq(text, "");
    wire_out_deinit(&o);
}
END_TEST

START_TEST(a_wild_count_takes_no_memory)
{
    uint8_t data[64] = {0};
    static const uint64_t counts[] = {9, 1000, UINT64_MAX, UINT64_MAX / 8 + 1, UINT64_C(1) << 61};
    for (size_t k = 0; k < sizeof counts / sizeof *counts; k++) {
        wire_in in = {.data = data, .bytes = sizeof data};
        (void)hr_host_mem_fail_at(1);
        ck_assert_ptr_null(wire_get_array(&in, counts[k], 8));
        ck_assert_uint_eq(hr_host_mem_fail_at(0), 0);
        ck_assert(in.bad);
    }
    wire_in in = {.data = data, .bytes = sizeof data};
    ck_assert_ptr_null(wire_get_array(&in, 0, 8));
    ck_assert(!in.bad);
    void *array = wire_get_array(&in, 8, 8);
    ck_assert_ptr_nonnull(array);
    hr_free(array);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("wire");
    TCase *messages = tcase_create("messages"), *bodies = tcase_create("bodies");
    tcase_add_loop_test(messages, messages_and_files_arrive_whole_and_in_order, 0, 4);
    tcase_add_test(messages, what_was_said_is_read_after_the_end);
    tcase_add_test(messages, a_writer_without_a_reader_keeps_up_to_its_limit);
    tcase_add_loop_test(messages, a_head_against_the_rules_ends_the_connection, 0, 8);
    tcase_add_test(messages, an_announced_body_takes_no_memory_before_it_comes);
    tcase_add_test(messages, a_file_in_the_middle_of_a_body_ends_the_connection);
    tcase_add_test(messages, short_memory_is_an_error_or_an_end);
    suite_add_tcase(suite, messages);
    tcase_add_test(bodies, a_body_cut_anywhere_is_bad_and_its_rest_is_zero);
    tcase_add_test(bodies, texts_that_do_not_fit_or_end_early_are_bad);
    tcase_add_test(bodies, a_wild_count_takes_no_memory);
    suite_add_tcase(suite, bodies);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
