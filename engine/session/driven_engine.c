// SPDX-License-Identifier: Apache-2.0
#include "headroom/file_kind.h"

#include "base/host_mem.h"
#include "session/driven.h"
#include "train/inside.h"

typedef struct training {
    hr_preset *preset;
    hr_engine *engine;
} training;

static const hr_engine *engine_of(const void *self)
{
    return ((const training *)self)->engine;
}

static void destroy(void *self)
{
    training *t = self;
    hr_engine_destroy(t->engine);
    hr_preset_close(t->preset);
    hr_free(t);
}

static hr_status command(void *self, const hr_command *what, hr_err *err)
{
    return hr_engine_command(((training *)self)->engine, what, err);
}

static void advance(void *self, bool *idle)
{
    hr_engine_advance(((training *)self)->engine, idle);
}

static hr_engine_state state(const void *self)
{
    return hr_engine_get_state(engine_of(self));
}

static const hr_err *error(const void *self)
{
    return hr_engine_error(engine_of(self));
}

static const hr_knobs *knobs(const void *self)
{
    return hr_engine_knobs(engine_of(self));
}

static uint64_t steps(const void *self)
{
    return hr_engine_steps(engine_of(self));
}

static hr_status report(void *self, hr_report *out, hr_err *err)
{
    return hr_engine_report(((training *)self)->engine, out, err);
}

static bool needs_build(const void *self)
{
    return engine_needs_build(engine_of(self));
}

static const allocator *heap(const void *self)
{
    return engine_heap(engine_of(self));
}

static uint64_t next_seq(const void *self)
{
    return engine_next_seq(engine_of(self));
}

static void holder(const void *self, uint32_t tag, uint32_t *tensor, uint8_t *category)
{
    *tensor = tag;
    *category = (uint8_t)engine_category(engine_of(self), tag);
}

static const driven_ops ops = {
    .destroy = destroy,
    .command = command,
    .advance = advance,
    .state = state,
    .error = error,
    .knobs = knobs,
    .steps = steps,
    .report = report,
    .needs_build = needs_build,
    .heap = heap,
    .next_seq = next_seq,
    .holder = holder,
};

static hr_status open_engine(const driven_options *options, training *t, hr_err *err)
{
    const hr_engine_options to_engine = {.sink = options->sink,
                                         .sink_context = options->sink_context,
                                         .position = options->position,
                                         .before_update = options->before_update,
                                         .before_update_context = options->sink_context};
    HR_TRY(hr_preset_open(options->preset, options->trusts, &t->preset, NULL, err));
    return hr_engine_create(t->preset, options->knobs, &to_engine, &t->engine, err);
}

hr_status driven_open(const driven_options *options, driven *out, hr_err *err)
{
    *out = (driven){.ops = NULL};
    if (hr_file_kind_of(options->preset) == HR_FILE_TRACE) {
        return recorded_open(options, out, err);
    }
    training *t = hr_calloc(1, sizeof *t);
    if (t == NULL) {
        return HR_FAIL(err, NOMEM, "no host memory for an engine");
    }
    const hr_status status = open_engine(options, t, err);
    if (status != HR_OK) {
        destroy(t);
        return status;
    }
    *out = (driven){.ops = &ops, .self = t, .engine = t->engine};
    return HR_OK;
}

void driven_close(driven *d)
{
    if (d->ops != NULL) {
        d->ops->destroy(d->self);
    }
    *d = (driven){.ops = NULL};
}
