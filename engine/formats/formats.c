// SPDX-License-Identifier: Apache-2.0
#include "formats/formats.h"

#include <string.h>
#include <sys/stat.h>

#include "base/text.h"
#include "base/torch_file.h"

hr_status trace_refuse(const input *in, hr_err *err)
{
    text known = {0};
    for (const trace_format *const *f = trace_formats; *f != NULL; f++) {
        text_append(&known, "%s%s", f == trace_formats ? "" : ", ", (*f)->line);
    }
    hr_status status = HR_FAIL(err, READ, "%s: needed one of %s; it looks like none of them", in->name,
                               known.length > 0 ? known.data : "the known traces");
    hr_err_try(err, "head -n 3 '%s'", in->name);
    text_deinit(&known);
    return status;
}

static bool is_checkpoint(input *in)
{
    const size_t bytes = input_ahead(in, TORCH_FILE_SIGN_BYTES);
    return torch_file_begins(input_here(in), bytes);
}

static hr_status refuse_checkpoint(const input *in, hr_err *err)
{
    const hr_status status = HR_FAIL(
        err, READ, "%.200s: needed a trace, had a PyTorch checkpoint, which holds weights and no allocations",
        in->name);
    hr_err_try(err,
               "python3 scripts/record/torch_record.py --output step.pickle train.py, and then step.pickle");
    return status;
}

// NULL: none of them does.
static const trace_format *recognise(input *in)
{
    const size_t bytes = input_ahead(in, TRACE_SIGN_BYTES);
    const trace_format *const *f = trace_formats;
    while (*f != NULL && !(*f)->recognise(input_here(in), bytes)) {
        f++;
    }
    return *f;
}

bool trace_recognises(const char *path)
{
    input in;
    struct stat about;
    // What a pipe says can be read once.
    if (stat(path, &about) != 0 || !S_ISREG(about.st_mode) || input_open(&in, path, NULL) != HR_OK) {
        return false;
    }
    const trace_format *format = recognise(&in);
    const bool was_read = input_status(&in, NULL) == HR_OK && !is_checkpoint(&in);
    input_close(&in);
    return was_read && format != NULL && (!format->is_any_text || text_ends_in(path, ".log"));
}

hr_status trace_read_input(input *in, trace *t, hr_err *err)
{
    *t = (trace){0};
    const trace_format *format = recognise(in);
    HR_TRY(input_status(in, err));
    if (is_checkpoint(in)) {
        return refuse_checkpoint(in, err);
    }
    if (format == NULL) {
        return trace_refuse(in, err);
    }
    t->format = format->name;
    hr_status status = format->read(in, t, err);
    if (status == HR_OK) {
        status = input_status(in, err);
    }
    if (status != HR_OK) {
        trace_deinit(t);
    }
    return status;
}

hr_status trace_read(const char *path, trace *t, hr_err *err)
{
    input in;
    *t = (trace){0};
    HR_TRY(input_open(&in, path, err));
    hr_status status = trace_read_input(&in, t, err);
    input_close(&in);
    return status;
}
