// SPDX-License-Identifier: Apache-2.0
// Epochs of real data through the pipeline alone, as fast as batches can be asked for: no model, nothing reads them.
//
//   bench_epochs SIDE CLASSES float32|float16|bfloat16 KEY=VALUE...
//
// Once it is open it prints a line. Then each line on stdin is answered with a line: `epoch`, one from its beginning, so that nothing
// was made ahead; a path: the values of the first batch are written there. At the end of stdin one last line: what the process took,
// and what its ledger says. Asserts no time.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "headroom/knobs.h"

#include "base/clock.h"
#include "data/pipeline.h"

static void must(hr_status status, const hr_err *err)
{
    if (status != HR_OK) {
        (void)fprintf(stderr, "bench_epochs: %s\n", err->sentence);
        exit(1);
    }
}

static data_type type_of(const char *word)
{
    return strcmp(word, "bfloat16") == 0 ? DATA_BF16 : strcmp(word, "float16") == 0 ? DATA_F16 : DATA_FLOAT;
}

static pipeline *open_pipeline(char **words, char **pairs)
{
    const uint32_t side = (uint32_t)strtoul(words[0], NULL, 10);
    const pipeline_wire wire = {.train = {type_of(words[2])}};
    const data_form form = {
        .count = 2,
        .slot = {{.type = DATA_FLOAT, .rank = 3, .dim = {side, side, 3}},
                 {.type = DATA_IDS, .is_label = true, .classes = (uint32_t)strtoul(words[1], NULL, 10)}}};
    hr_knobs knobs;
    hr_err err = {0};
    pipeline *p = NULL;
    hr_knobs_init(&knobs);
    for (; *pairs != NULL; pairs++) {
        must(hr_knobs_set_pair(&knobs, *pairs, &err), &err);
    }
    must(pipeline_open(&knobs, &form, &wire, &p, &err), &err);
    return p;
}

static double since(uint64_t began_ns)
{
    return 1e-9 * (double)(clock_now_ns() - began_ns);
}

// The whole epoch, its first batch included.
static void run_epoch(pipeline *p)
{
    const uint64_t began_ns = clock_now_ns();
    uint64_t samples = 0, wait_ns;
    double first_seconds = 0;
    data_item item = {0};
    hr_err err = {0};
    must(pipeline_seek(p, (data_position){0}, &err), &err);
    for (;;) {
        must(pipeline_next(p, &item, &wait_ns, &err), &err);
        if (item.end) {
            break;
        }
        first_seconds = samples == 0 ? since(began_ns) : first_seconds;
        samples += item.count;
    }
    printf("{\"samples\": %" PRIu64 ", \"seconds\": %.6f, \"first_batch_seconds\": %.6f}\n", samples,
           since(began_ns), first_seconds);
    (void)fflush(stdout);
}

static void write_first_batch(pipeline *p, const char *path, uint64_t sample_bytes)
{
    data_item item;
    uint64_t wait_ns;
    hr_err err = {0};
    FILE *file = fopen(path, "wb");
    must(pipeline_seek(p, (data_position){0}, &err), &err);
    must(pipeline_next(p, &item, &wait_ns, &err), &err);
    if (file == NULL || fwrite(item.room.slot[0], sample_bytes, item.count, file) != item.count ||
        fclose(file) != 0) {
        (void)fprintf(stderr, "bench_epochs: %s cannot be written\n", path);
        exit(1);
    }
    printf("{\"samples\": %" PRIu32 "}\n", item.count);
    (void)fflush(stdout);
}

// Peak of resident memory since this program began; 0 where the kernel does not say.
static uint64_t peak_resident_bytes(void)
{
    FILE *file = fopen("/proc/self/status", "r");
    char line[256];
    uint64_t kib = 0;
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        if (strncmp(line, "VmHWM:", 6) == 0) {
            kib = strtoull(line + 6, NULL, 10);
        }
    }
    if (file != NULL) {
        (void)fclose(file);
    }
    return kib * 1024;
}

static void tell(const pipeline *p)
{
    pipeline_stage_info stage[PIPELINE_MAX_STAGES];
    const uint32_t count = pipeline_stages(p, stage);
    printf("{\"label\": \"%s\", \"peak_resident_bytes\": %" PRIu64 ", \"stages\": [",
           pipeline_get_info(p)->label, peak_resident_bytes());
    for (uint32_t k = 0; k < count; k++) {
        printf("%s{\"name\": \"%s\", \"peak_host_bytes\": %" PRIu64 "}", k == 0 ? "" : ", ", stage[k].name,
               stage[k].peak_host_bytes);
    }
    puts("]}");
}

int main(int argc, char **argv)
{
    char line[4096];
    if (argc < 4) {
        (void)fputs("usage: bench_epochs SIDE CLASSES float32|float16|bfloat16 KEY=VALUE...\n", stderr);
        return 2;
    }
    const uint64_t side = strtoull(argv[1], NULL, 10);
    pipeline *p = open_pipeline(argv + 1, argv + 4);
    puts("{}"); // it is open
    (void)fflush(stdout);
    while (fgets(line, sizeof line, stdin) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        if (strcmp(line, "epoch") == 0) {
            run_epoch(p);
        } else {
            write_first_batch(p, line, side * side * 3 * (type_of(argv[3]) == DATA_FLOAT ? 4 : 2));
        }
    }
    tell(p);
    pipeline_close(p);
    return 0;
}
