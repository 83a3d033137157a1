// SPDX-License-Identifier: Apache-2.0
// Runs a recipe from a text, with its output caught. One at a time, in a folder of its own.
#ifndef TESTS_LUA_RECIPE_RUN_H
#define TESTS_LUA_RECIPE_RUN_H

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "app/lua/script.h"

typedef struct recipe_run {
    char folder[64]; // of recipe.lua
    char file[256];
    char home[4096];   // where the test stood, and stands again after it
    char *out, *notes; // what was printed, what went to stderr
    int code;
} recipe_run;

static const script_limits test_limits = {.memory_bytes = UINT64_C(16) << 20, .lua_ns = 5000000000};
static const script_limits short_limits = {.memory_bytes = UINT64_C(16) << 20, .lua_ns = 50000000};

static inline void recipe_put(const recipe_run *r, const char *name, const char *text, size_t length)
{
    char path[160];
    (void)snprintf(path, sizeof path, "%s/%s", r->folder, name);
    FILE *f = fopen(path, "wb");
    ck_assert_msg(f != NULL, "%s", path);
    ck_assert_uint_eq(fwrite(text, 1, length, f), length);
    ck_assert_int_eq(fclose(f), 0);
}

static inline void recipe_make(recipe_run *r)
{
    *r = (recipe_run){.folder = "/tmp/headroom-lua-XXXXXX"};
    ck_assert_ptr_nonnull(mkdtemp(r->folder));
    ck_assert_ptr_nonnull(getcwd(r->home, sizeof r->home));
    (void)snprintf(r->file, sizeof r->file, "%s/recipe.lua", r->folder);
    hr_preset_search_beside(".");
}

// Runs r->file; the output of an earlier run is dropped.
static inline void recipe_start(recipe_run *r, int argc, char **argv, const script_limits *limits)
{
    size_t out_length = 0, notes_length = 0;
    free(r->out);
    free(r->notes);
    script_options options = {.limits = *limits,
                              .out = open_memstream(&r->out, &out_length),
                              .notes = open_memstream(&r->notes, &notes_length)};
    ck_assert_ptr_nonnull(options.out);
    ck_assert_ptr_nonnull(options.notes);
    r->code = script_main(r->file, argc, argv, &options);
    (void)fclose(options.out);
    (void)fclose(options.notes);
}

static inline void recipe_drop(recipe_run *r)
{
    char command[128];
    ck_assert_int_eq(chdir(r->home), 0);
    (void)snprintf(command, sizeof command, "rm -r %s", r->folder);
    ck_assert_int_eq(system(command), 0);
    free(r->out);
    free(r->notes);
}

// All of it, for a recipe that needs no other file.
static inline recipe_run recipe_run_text(const char *text, const script_limits *limits)
{
    recipe_run r;
    recipe_make(&r);
    recipe_put(&r, "recipe.lua", text, strlen(text));
    recipe_start(&r, 0, NULL, limits);
    return r;
}

static inline void recipe_check(const char *text, const script_limits *limits, int code, const char *sentence)
{
    recipe_run r = recipe_run_text(text, limits);
    ck_assert_msg(r.code == code && strstr(r.notes, sentence) != NULL && (code != 0 || r.notes[0] == '\0'),
                  "%s\n-- code %d, wanted %d and '%s'\n%s%s", text, r.code, code, sentence, r.out, r.notes);
    recipe_drop(&r);
}

static inline void recipe_expect_fine(const char *text)
{
    recipe_check(text, &test_limits, 0, "");
}

static inline void recipe_expect_failure(const char *text, int code, const char *sentence)
{
    recipe_check(text, &test_limits, code, sentence);
}

// The reference device computes: losses, epochs, evaluations and saves come from it.
static const char small_preset[] = "device: {kind: reference, vram: 8MiB}\n"
                                   "batch: {size: 2}\n"
                                   "pipeline: {shuffle: 8}\n"
                                   "model:\n"
                                   "  name: small\n"
                                   "  input: {shape: [32, 32, 3]}\n"
                                   "  classes: 10\n"
                                   "  loss: softmax_cross_entropy\n"
                                   "  layers:\n"
                                   "    - {kind: max_pool, size: 8, stride: 8}\n"
                                   "    - {kind: flatten}\n"
                                   "    - {kind: dense, units: 10}\n";

// With small.yaml beside it, and with the recipe's folder as the current one: ./headroom-out lies there.
static inline void recipe_check_small(const char *text, int code, const char *sentence)
{
    recipe_run r;
    recipe_make(&r);
    recipe_put(&r, "small.yaml", small_preset, strlen(small_preset));
    recipe_put(&r, "recipe.lua", text, strlen(text));
    ck_assert_int_eq(chdir(r.folder), 0);
    recipe_start(&r, 0, NULL, &test_limits);
    ck_assert_msg(r.code == code && strstr(r.notes, sentence) != NULL,
                  "%s\n-- code %d, wanted %d and '%s'\n%s%s", text, r.code, code, sentence, r.out, r.notes);
    recipe_drop(&r);
}

static inline void recipe_expect_fine_small(const char *text)
{
    recipe_check_small(text, 0, "");
}

#endif
