// SPDX-License-Identifier: Apache-2.0
// Reads a PyTorch snapshot as a trace: bench_snapshot FILE. Beside it the floor: the same bytes only passed over.
#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#include "base/clock.h"
#include "base/input.h"
#include "formats/formats.h"

static hr_status pass_over(const char *path, uint64_t *bytes, uint64_t *sum, hr_err *err)
{
    enum { PIECE_BYTES = 64 << 10 };
    input in;
    HR_TRY(input_open(&in, path, err));
    for (size_t ahead; (ahead = input_ahead(&in, PIECE_BYTES)) > 0; input_pass(&in, ahead)) {
        const unsigned char *here = (const unsigned char *)input_here(&in);
        for (size_t k = 0; k < ahead; k++) {
            *sum += here[k];
        }
    }
    *bytes = input_offset(&in);
    hr_status status = input_status(&in, err);
    input_close(&in);
    return status;
}

// Of this process, whatever else the machine does.
static uint64_t cpu_ns(void)
{
    struct timespec now;
    return clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now) == 0
               ? (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec
               : 0;
}

int main(int argc, char **argv)
{
    hr_err err;
    trace t;
    uint64_t bytes = 0, sum = 0, begin_ns = clock_now_ns();
    if (argc != 2) {
        fprintf(stderr, "usage: bench_snapshot FILE\n");
        return 2;
    }
    hr_status status = pass_over(argv[1], &bytes, &sum, &err);
    uint64_t floor_ns = clock_now_ns() - begin_ns;
    uint64_t begin_cpu_ns = cpu_ns();
    begin_ns = clock_now_ns();
    status = status == HR_OK ? trace_read(argv[1], &t, &err) : status;
    uint64_t read_ns = clock_now_ns() - begin_ns, read_cpu_ns = cpu_ns() - begin_cpu_ns;
    if (status != HR_OK || trace_check(&t, &err) != HR_OK) {
        fprintf(stderr, "%s\n", err.sentence);
        return 1;
    }
    printf("{\"bytes\": %" PRIu64 ", \"sum\": %" PRIu64 ", \"floor_seconds\": %.6f, \"read_seconds\": %.6f, "
           "\"read_cpu_seconds\": %.6f, ",
           bytes, sum, (double)floor_ns * 1e-9, (double)read_ns * 1e-9, (double)read_cpu_ns * 1e-9);
    printf("\"events\": %" PRIu32 ", \"rows\": %" PRIu64 ", \"lost_frees\": %" PRIu64 ", \"reused\": %" PRIu64
           ", \"names\": %" PRIu32 ", \"chunks\": %" PRIu32 "}\n",
           t.events.count, t.rows, t.lost_frees, t.reused, intern_count(&t.names),
           t.heaps[0] == NULL ? 0 : t.heaps[0]->chunks.count);
    trace_deinit(&t);
    return 0;
}
