// SPDX-License-Identifier: Apache-2.0
// The file of what instructions took.
#include "insight/times.h"

#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/text.h"
#include "train/engine_impl.h"

// Only a table of times is replaced by another.
hr_status engine_set_times_file(hr_engine *e, const char *path, hr_err *err)
{
    char begin[sizeof TIMES_HEADINGS] = "";
    file_writer *writer = NULL;
    FILE *there = NULL;
    if (!text_copy(e->times_file, sizeof e->times_file, path) || path[0] == '\0') {
        return HR_FAIL(err, WRITE, "needed the name of a file for times, had '%s'", path);
    }
    HR_TRY(file_writer_open(path, &writer, err));
    file_writer_abandon(writer);
    there = fopen(path, "re");
    if (there == NULL) {
        return HR_OK;
    }
    const size_t had = fread(begin, 1, sizeof begin - 1, there);
    (void)fclose(there);
    if (had == 0 || strcmp(begin, TIMES_HEADINGS) == 0) {
        return HR_OK;
    }
    (void)HR_FAIL(err, WRITE, "%s: needed a table of times or no file, had something else; it stays as it is",
                  path);
    hr_err_try(err, "--times ANOTHER.csv");
    return HR_WRITE;
}

static hr_status print_times(const build *b, text *table, hr_err *err)
{
    const program *p = b->programs[BUILD_TRAIN];
    FILE *out = text_stream(table);
    if (out != NULL) {
        times_print(p, executor_times(b->x, b->slots[BUILD_TRAIN]), b->device, b->context, out);
    }
    return out != NULL && fclose(out) == 0 && !table->failed
               ? HR_OK
               : HR_FAIL(err, NOMEM, "no host memory for a table of %u instructions", p->instr_count);
}

static hr_status write_table(const char *path, const text *table, hr_err *err)
{
    file_writer *writer = NULL;
    HR_TRY(file_writer_open(path, &writer, err));
    const hr_status status = file_writer_add(writer, table->data, table->length, err);
    const hr_status written = file_writer_commit(writer, status == HR_OK ? err : NULL);
    return status == HR_OK ? written : status;
}

hr_status hr_engine_write_times(hr_engine *e, hr_err *err)
{
    text table = {0};
    const build *b = e->build;
    if (b == NULL || b->x == NULL || executor_times(b->x, b->slots[BUILD_TRAIN])->steps < 2) {
        (void)HR_FAIL(err, STATE,
                      "no instruction was timed: needed a device that computes, and two whole steps");
        hr_err_try(err, "-s device.kind=cpu --steps 10");
        return HR_STATE;
    }
    hr_status status = print_times(b, &table, err);
    status = status == HR_OK ? write_table(e->times_file, &table, err) : status;
    text_deinit(&table);
    return status;
}
