// SPDX-License-Identifier: Apache-2.0
// export: what of a training is deployed, what it weighs, and what that costs in accuracy; writes it with -o.
#include <stdio.h>

#include "headroom/deploy.h"

#include "app/cli/cli.h"
#include "app/cli/export_report.h"
#include "app/cli/options.h"
#include "app/cli/say.h"

static hr_status take_request(const cli_args *args, hr_deploy_request *out, hr_err *err)
{
    const char *word = args->value[APP_QUANTIZE];
    *out = (hr_deploy_request){.save = args->value[APP_SAVE],
                               .out = args->value[APP_OUT],
                               .replaces = cli_given(args, APP_FORCE),
                               .ranks = cli_given(args, APP_RANKS),
                               .merges = cli_given(args, APP_MERGE),
                               .adapters = cli_given(args, APP_ADAPTERS)};
    const bool names_nothing = out->out != NULL && out->out[0] == '\0';
    if (args->words[0] == NULL || out->save == NULL || out->save[0] == '\0' || names_nothing) {
        (void)HR_FAIL(err, USAGE, "export needs %s",
                      names_nothing ? "a file behind -o"
                                    : "a preset and --save FILE with what was trained of it");
        hr_err_try(err, "headroom run demo --steps 200 -s train.save=w.safetensors && headroom export demo "
                        "--save w.safetensors --quantize int8");
        return HR_USAGE;
    }
    return word == NULL ? HR_OK : hr_quantize_parse(word, &out->quantize, err);
}

// compress.quantize is of a training's evaluations; what export makes of weights its own option says.
static hr_status check_mode(const cli_args *args, const cli_subject *subject, hr_err *err)
{
    const char *mode = hr_knob_text(&subject->knobs, HR_KNOB_COMPRESS_QUANTIZE);
    if (args->value[APP_QUANTIZE] != NULL || !hr_knobs_quantize(&subject->knobs)) {
        return HR_OK;
    }
    (void)HR_FAIL(err, USAGE,
                  "compress.quantize=%s is how a training evaluates: export needed --quantize beside it",
                  mode);
    hr_err_try(err, "--quantize %s, or --quantize none", mode);
    return HR_USAGE;
}

static hr_status export(const cli_args *args, hr_err *err)
{
    hr_deploy_request request;
    cli_subject subject;
    hr_deploy made;
    HR_TRY(take_request(args, &request, err));
    hr_status status = cli_open(args, args->words[0], &subject, err);
    status = status == HR_OK ? check_mode(args, &subject, err) : status;
    if (status == HR_OK) {
        status = hr_deploy_run(subject.preset, &subject.knobs, &request, &made, err);
    }
    if (status == HR_SAVE && err->hint[0] == '\0') {
        hr_err_try(err, "--save FILE with one that train.save wrote of this preset");
    }
    if (status == HR_OK) {
        if (cli_given(args, APP_JSON)) {
            export_print_json(&made, &request);
        } else {
            export_print_text(args->words[0], &made, &request);
            if (made.had_ranges) {
                puts("Ranges of activations (compress.quantize=qat) are not deployed, weights alone.");
            }
        }
        hr_deploy_deinit(&made);
    }
    cli_close(&subject);
    return status;
}

int cli_export(int argc, char **argv)
{
    cli_args args;
    hr_err err;
    cli_next next = cli_parse(argc, argv, 1, &args, &err);
    if (next != CLI_GO_ON) {
        return next == CLI_DONE ? 0 : say_error(&err, cli_given(&args, APP_JSON));
    }
    return export(&args, &err) == HR_OK ? 0 : say_error(&err, cli_given(&args, APP_JSON));
}
