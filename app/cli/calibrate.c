// SPDX-License-Identifier: Apache-2.0
// doctor --calibrate: what this machine takes, as a table or as JSON.
#include "app/cli/calibrate.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "headroom/calibration.h"
#include "headroom/units.h"

#include "app/cli/emit.h"
#include "app/cli/say.h"

static void print_rate(double per_second, const char *unit)
{
    if (isnan(per_second)) {
        printf("  %7s %-7s", "-", "");
    } else {
        printf("  %7.3g %-7s", per_second * 1e-9, unit);
    }
}

// How good the rates are: what they say of the models that they were made from.
static void print_models(const hr_calibration *c)
{
    printf("  %-14s %5s %-9s %6s %12s %12s %6s %6s\n", "model", "batch", "type", "steps", "planned",
           "measured", "ratio", "noise");
    for (size_t k = 0; k < c->model_count; k++) {
        const hr_calibration_model *m = &c->models[k];
        printf("  %-14s %5" PRIu32 " %-9s %6" PRIu32 " %9.3f ms %9.3f ms %6.2f %4.0f %%\n", m->name, m->batch,
               m->type, m->steps, m->planned_seconds * 1e3, m->measured_seconds * 1e3,
               m->planned_seconds / m->measured_seconds, m->noise * 100);
    }
    printf("\n  planned: by the rates of the other models; ratio: planned over measured: half\n"
           "  of the models are within %.0f %%, four in five within %.0f %%, the range of plans;\n"
           "  noise: how much longer than their fastest time instructions took, %.0f %% in all\n",
           c->error * 100, (c->spread - 1) * 100, c->noise * 100);
}

static void print_table(const hr_calibration *c)
{
    printf("cpu, %s, %" PRIu32 " thread%s: measured in %.1f s", c->isa, c->threads,
           c->threads == 1 ? "" : "s", c->seconds);
    if (c->resumed_count > 0) {
        printf(", %zu of %zu models before", c->resumed_count, c->model_count);
    }
    puts("\n");
    printf("  %-16s %-8s %10s  %-15s  %-15s%8s\n", "family", "type", "to start", "arithmetic", "memory",
           "measured");
    for (size_t k = 0; k < c->row_count; k++) {
        const hr_calibration_row *r = &c->rows[k];
        printf("  %-16s %-8s %7.2f us", r->family, r->type, r->start_seconds * 1e6);
        print_rate(r->flops_per_second, "GFLOP/s");
        print_rate(r->bytes_per_second, "GB/s");
        printf("%8" PRIu64 "\n", r->instructions);
    }
    printf("\n  an instruction takes what it costs to start, and its arithmetic, and its\n"
           "  memory; - costs nothing. Kernels that were measured have rates of their own.\n"
           "  Every line of a listing takes %.0f ns besides.\n\n",
           c->line_seconds * 1e9);
    print_models(c);
    if (c->kept) {
        printf("  kept in %s:\n  plans for the cpu device now say how long a step takes\n", c->path);
    } else if (c->refusal[0] != '\0') {
        printf("  not kept: ");
        say_paragraph(c->refusal, 12);
    } else {
        printf("  not kept: %s%s\n", c->path[0] == '\0' ? "neither XDG_CACHE_HOME nor HOME is set" : c->path,
               c->path[0] == '\0' ? "" : " cannot be written");
    }
}

static void emit_models(emitter *e, const hr_calibration *c)
{
    emit_array(e, "models");
    for (size_t k = 0; k < c->model_count; k++) {
        const hr_calibration_model *m = &c->models[k];
        emit_row(e, NULL);
        emit_text(e, "name", m->name);
        emit_text(e, "dtype", m->type);
        emit_count(e, "batch", m->batch);
        emit_count(e, "steps", m->steps);
        emit_real(e, "planned_seconds", m->planned_seconds, EMIT_EXACT);
        emit_real(e, "measured_seconds", m->measured_seconds, EMIT_EXACT);
        emit_real(e, "noise", m->noise, EMIT_EXACT);
        emit_end_object(e);
    }
    emit_end_array(e);
}

static void print_json(const hr_calibration *c)
{
    emitter e = {.out = stdout};
    emit_object(&e, NULL);
    emit_text(&e, "schema", "headroom.calibration/1");
    emit_text(&e, "isa", c->isa);
    emit_count(&e, "threads", c->threads);
    emit_real(&e, "seconds", c->seconds, EMIT_EXACT);
    emit_text(&e, "kept", c->kept ? c->path : NULL);
    emit_text(&e, "refusal", c->refusal[0] != '\0' ? c->refusal : NULL);
    emit_real(&e, "noise", c->noise, EMIT_EXACT);
    emit_real(&e, "model_error", c->error, EMIT_EXACT);
    emit_real(&e, "spread", c->spread, EMIT_EXACT);
    emit_real(&e, "line_seconds", c->line_seconds, EMIT_EXACT);
    emit_count(&e, "resumed", c->resumed_count);
    emit_bool(&e, "goes_on", c->goes_on);
    emit_array(&e, "families");
    for (size_t k = 0; k < c->row_count; k++) {
        const hr_calibration_row *r = &c->rows[k];
        emit_row(&e, NULL);
        emit_text(&e, "name", r->family);
        emit_text(&e, "dtype", r->type);
        emit_count(&e, "instructions", r->instructions);
        emit_real(&e, "start_seconds", r->start_seconds, EMIT_EXACT);
        emit_real(&e, "flops_per_second", r->flops_per_second, EMIT_EXACT);
        emit_real(&e, "bytes_per_second", r->bytes_per_second, EMIT_EXACT);
        emit_end_object(&e);
    }
    emit_end_array(&e);
    emit_models(&e, c);
    emit_end_object(&e);
}

int calibrate(const cli_args *args)
{
    const bool json = cli_given(args, APP_JSON);
    hr_knobs knobs;
    hr_calibration c;
    hr_err err;
    uint64_t seconds = 0;
    hr_status status = cli_count(args, APP_SECONDS, (uint64_t)HR_CALIBRATION_SECONDS, &seconds, &err);
    hr_knobs_init(&knobs);
    for (unsigned k = 0; k < args->set_count && status == HR_OK; k++) {
        status = hr_knobs_set_pair(&knobs, args->sets[k], &err);
    }
    if (status == HR_OK) {
        (void)fprintf(stderr, "measuring for %" PRIu64 " s at most, best on an idle machine\n", seconds);
        status = hr_calibrate(&knobs, (double)seconds, &c, &err);
    }
    if (status != HR_OK) {
        return say_error(&err, json);
    }
    if (json) {
        print_json(&c);
    } else {
        print_table(&c);
    }
    return c.refusal[0] == '\0' ? 0 : 1;
}
