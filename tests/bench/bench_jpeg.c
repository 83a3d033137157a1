// SPDX-License-Identifier: Apache-2.0
// The rate of libjpeg-turbo itself, as the floor of a pipeline that decodes: every file of a list is decoded from memory into the
// same memory, over and over, one decoder a thread.
//
//   bench_jpeg THREADS SIDE ROUNDS <LIST      file names, one a line
//
// Each is decoded at the smallest power-of-two fraction of its size that covers SIDE x SIDE. One JSON object: seconds of each
// round, images and bytes of a round. Asserts no time.
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <turbojpeg.h>

#include "base/clock.h"

enum { THREADS_MOST = 64, FILES_MOST = 1 << 16, PIXELS_MOST = 1 << 24 };

typedef struct image {
    unsigned char *bytes;
    size_t size_bytes;
} image;

typedef struct job {
    const image *images;
    size_t count, first, step;
    int side;
    pthread_t thread;
} job;

static void fail(const char *what)
{
    (void)fprintf(stderr, "bench_jpeg: %s\n", what);
    exit(1);
}

static image read_image(const char *name)
{
    FILE *file = fopen(name, "rb");
    if (file == NULL || fseek(file, 0, SEEK_END) != 0) {
        fail(name);
    }
    image i = {.size_bytes = (size_t)ftell(file)};
    i.bytes = malloc(i.size_bytes);
    rewind(file);
    if (i.bytes == NULL || fread(i.bytes, 1, i.size_bytes, file) != i.size_bytes) {
        fail(name);
    }
    (void)fclose(file);
    return i;
}

// width * height at 1, 1/2, 1/4 or 1/8.
static void scale_to_cover(int side, int *width, int *height)
{
    for (int k = 0; k < 3 && (*width + 1) / 2 >= side && (*height + 1) / 2 >= side; k++) {
        *width = (*width + 1) / 2;
        *height = (*height + 1) / 2;
    }
}

static void *decode(void *argument)
{
    const job *j = argument;
    unsigned char *pixels = malloc((size_t)3 * PIXELS_MOST);
    tjhandle handle = tjInitDecompress();
    for (size_t k = j->first; k < j->count; k += j->step) {
        const image *i = &j->images[k];
        int width, height, sampling, space;
        if (tjDecompressHeader3(handle, i->bytes, i->size_bytes, &width, &height, &sampling, &space) != 0 ||
            (int64_t)width * height > PIXELS_MOST) {
            fail("not a JPEG, or a large one");
        }
        scale_to_cover(j->side, &width, &height);
        if (tjDecompress2(handle, i->bytes, i->size_bytes, pixels, width, 0, height, TJPF_RGB, 0) != 0) {
            fail(tjGetErrorStr2(handle));
        }
    }
    tjDestroy(handle);
    free(pixels);
    return NULL;
}

static double decode_all(const image *images, size_t count, size_t threads, int side)
{
    job jobs[THREADS_MOST];
    const uint64_t began_ns = clock_now_ns();
    for (size_t k = 0; k < threads; k++) {
        jobs[k] = (job){.images = images, .count = count, .first = k, .step = threads, .side = side};
        if (pthread_create(&jobs[k].thread, NULL, decode, &jobs[k]) != 0) {
            fail("no thread");
        }
    }
    for (size_t k = 0; k < threads; k++) {
        (void)pthread_join(jobs[k].thread, NULL);
    }
    return 1e-9 * (double)(clock_now_ns() - began_ns);
}

int main(int argc, char **argv)
{
    const unsigned long threads = argc == 4 ? strtoul(argv[1], NULL, 10) : 0;
    const int side = argc == 4 ? (int)strtol(argv[2], NULL, 10) : 0;
    const unsigned long rounds = argc == 4 ? strtoul(argv[3], NULL, 10) : 0;
    static image images[FILES_MOST];
    char name[4096];
    size_t count = 0;
    uint64_t bytes = 0;
    if (threads == 0 || threads > THREADS_MOST || side <= 0 || rounds == 0) {
        (void)fputs("usage: bench_jpeg THREADS SIDE ROUNDS <LIST\n", stderr);
        return 2;
    }
    while (count < FILES_MOST && fgets(name, sizeof name, stdin) != NULL) {
        name[strcspn(name, "\n")] = '\0';
        images[count] = read_image(name);
        bytes += images[count++].size_bytes;
    }
    printf("{\"images\": %zu, \"bytes\": %" PRIu64 ", \"seconds\": [", count, bytes);
    for (unsigned long k = 0; k < rounds; k++) {
        printf("%s%.6f", k == 0 ? "" : ", ", decode_all(images, count, threads, side));
    }
    puts("]}");
    for (size_t k = 0; k < count; k++) {
        free(images[k].bytes);
    }
    return 0;
}
