// SPDX-License-Identifier: Apache-2.0
#include "formats/exporter.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/host_mem.h"
#include "base/text.h"

enum { SIGN_BYTES = 4096, DEVICES_MAX = 256 }; // an event's device is one byte

struct exporter {
    const trace_writer *row;
    event_source source;
    void *writer;
};

// ---- which row ------------------------------------------------------------------------------------------------

static hr_status no_such_format(const char *file, hr_err *err)
{
    text suffixes = {0}, names = {0};
    for (const trace_writer *const *w = trace_writers; *w != NULL; w++) {
        const hr_trace_format *f = &(*w)->about;
        text_append(&suffixes, "%s%s", suffixes.length == 0 || f->suffix[0] == '\0' ? "" : ", ", f->suffix);
        text_append(&names, "%s%s", names.length == 0 ? "" : ", ", f->name);
    }
    bool is_short = suffixes.failed || names.failed;
    (void)HR_FAIL(err, USAGE, "--trace %s: needed a file ending in %s, or NAME:FILE with a name of %s", file,
                  is_short ? "a known suffix" : suffixes.data, is_short ? "the known ones" : names.data);
    hr_err_try(err, "--trace csv:%s", file);
    text_deinit(&suffixes);
    text_deinit(&names);
    return HR_USAGE;
}

hr_status trace_writer_find(const char *file, const trace_writer **row, const char **path, hr_err *err)
{
    for (const trace_writer *const *w = trace_writers; *w != NULL; w++) {
        const size_t length = strlen((*w)->about.name);
        if (strncmp(file, (*w)->about.name, length) == 0 && file[length] == ':' && file[length + 1] != '\0') {
            *row = *w;
            *path = file + length + 1;
            return HR_OK;
        }
    }
    for (const trace_writer *const *w = trace_writers; *w != NULL; w++) {
        if (text_ends_in(file, (*w)->about.suffix)) {
            *row = *w;
            *path = file;
            return HR_OK;
        }
    }
    return no_such_format(file, err);
}

// Opening does not wait: it may be a pipe.
static hr_status check_replaceable(const trace_writer *row, const char *path, hr_err *err)
{
    char start[SIGN_BYTES];
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT) {
        return HR_OK;
    }
    ssize_t bytes = fd < 0 ? -1 : read(fd, start, sizeof start);
    const char *why = bytes < 0 ? strerror(errno) : "something else";
    if (fd >= 0) {
        (void)close(fd);
    }
    if (bytes >= 0 && row->is_own(start, (size_t)bytes)) {
        return HR_OK;
    }
    (void)HR_FAIL(err, WRITE, "%s: needed a %s file of headroom or no file, had: %s; it stays as it is", path,
                  row->about.name, why);
    hr_err_try(err, "--trace %s%sANOTHER%s", row->about.suffix[0] == '\0' ? row->about.name : "",
               row->about.suffix[0] == '\0' ? ":" : "", row->about.suffix);
    return HR_WRITE;
}

// ---- writing --------------------------------------------------------------------------------------------------

hr_status exporter_open(const char *file, const event_source *source, exporter **out, hr_err *err)
{
    const trace_writer *row = NULL;
    const char *path = NULL;
    *out = NULL;
    HR_TRY(trace_writer_find(file, &row, &path, err));
    HR_TRY(check_replaceable(row, path, err));
    exporter *e = hr_calloc(1, sizeof *e);
    if (e == NULL) {
        return HR_FAIL(err, NOMEM, "no host memory for the trace %s", path);
    }
    *e = (exporter){.row = row, .source = *source};
    hr_status status = row->open(path, &e->source, &e->writer, err);
    if (status != HR_OK) {
        hr_free(e);
        return status;
    }
    *out = e;
    return HR_OK;
}

void exporter_sink(void *context, const hr_event *event)
{
    exporter *e = context;
    e->row->sink(e->writer, event);
}

hr_status exporter_failure(const exporter *e, hr_err *err)
{
    return e->row->failure == NULL ? HR_OK : e->row->failure(e->writer, err);
}

bool exporter_wants_heaps(const exporter *e)
{
    return e->row->wants_heaps;
}

static hr_status take_snapshots(const event_source *source, heap_snapshot *heaps, hr_err *err)
{
    for (uint32_t k = 0; source->snapshot != NULL && k < source->device_count; k++) {
        HR_TRY(source->snapshot(source->context, (uint8_t)k, &heaps[k], err));
    }
    return HR_OK;
}

static hr_status close_with_heaps(exporter *e, hr_err *err)
{
    const uint32_t count = e->source.device_count < DEVICES_MAX ? e->source.device_count : DEVICES_MAX;
    heap_snapshot *heaps = hr_calloc(count, sizeof *heaps);
    e->source.device_count = count;
    hr_status status = heaps == NULL ? HR_FAIL(err, NOMEM, "no host memory for the heaps of a trace")
                                     : take_snapshots(&e->source, heaps, err);
    hr_status closed = e->row->close(e->writer, heaps, status != HR_OK, status == HR_OK ? err : NULL);
    for (uint32_t k = 0; heaps != NULL && k < count; k++) {
        heap_snapshot_deinit(&heaps[k]);
    }
    hr_free(heaps);
    return status == HR_OK ? closed : status;
}

hr_status exporter_close(exporter *e, hr_err *err)
{
    if (e == NULL) {
        return HR_OK;
    }
    hr_status status =
        e->row->wants_heaps ? close_with_heaps(e, err) : e->row->close(e->writer, NULL, false, err);
    hr_free(e);
    return status;
}

void exporter_abandon(exporter *e)
{
    if (e != NULL) {
        (void)e->row->close(e->writer, NULL, true, NULL);
        hr_free(e);
    }
}
