// SPDX-License-Identifier: Apache-2.0
#include "app/cli/style.h"

#include <stdio.h>
#include <string.h>

#include "headroom/replay.h"
#include "headroom/words.h"

enum { STYLES_MAX = 8 };

hr_status style_of(const cli_args *args, const char **style, hr_err *err)
{
    const char *word = args->value[APP_STYLE];
    const char *names[STYLES_MAX] = {"headroom"};
    size_t count = 1;
    *style = NULL;
    if (word == NULL || strcmp(word, names[0]) == 0) {
        return HR_OK;
    }
    while (count < STYLES_MAX && (names[count] = hr_heap_style(count - 1)) != NULL) {
        if (strcmp(names[count++], word) == 0) {
            *style = word;
            return HR_OK;
        }
    }
    const char *near = hr_word_nearest(word, names, count);
    hr_status status =
        HR_FAIL(err, USAGE, "--style: there is no style '%.64s'%s%s%s", word,
                near == NULL ? "" : " — did you mean '", near == NULL ? "" : near, near == NULL ? "" : "'?");
    hr_err_try(err, "--style %s", near == NULL ? names[1] : near);
    return status;
}

hr_status style_beside_report(const cli_args *args, const char **style, hr_err *err)
{
    HR_TRY(style_of(args, style, err));
    if (*style != NULL && cli_given(args, APP_JSON)) {
        hr_status status =
            HR_FAIL(err, USAGE, "--style writes text and --json one document: needed one, had both");
        hr_err_try(err, "--style %s", *style);
        return status;
    }
    return HR_OK;
}

hr_status style_write(const hr_engine *engine, const char *style, hr_err *err)
{
    if (style == NULL || hr_engine_get_state(engine) != HR_ENGINE_OOM) {
        return HR_OK;
    }
    const hr_heap *heap = hr_engine_failure_heap(engine);
    if (heap == NULL) {
        return HR_FAIL(err, NOMEM, "--style %s: needed host memory to keep the heap, had none", style);
    }
    printf("\nin the words of %s:\n", style);
    return hr_heap_write(heap, style, stdout, err);
}
