// SPDX-License-Identifier: Apache-2.0
// What a stranger wrote, in a file's name or in it, comes out of the program as text that no terminal obeys.
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "program.h"

#define ESC "\x1b[31m"
#define CSI                                                                                                  \
    "\xc2\x9b"                                                                                               \
    "31m"
#define LAYERS "input: {shape: [4]}, classes: 2, layers: [{name: l, kind: dense, units: 2}]}\n"
#define PLAIN  "device: {kind: plan, vram: 64MiB}\nmodel: {name: m, " LAYERS

// Below the home of the program; XDG_DATA_HOME is there too.
static const struct {
    const char *name, *content;
} files[] = {
    {".local/share/headroom/presets/title.yaml", "title: \"\\e[31mred\"\n" PLAIN},
    {".local/share/headroom/presets/na" ESC "me.yaml", "title: a plain title\n" PLAIN},
    {"good" ESC ".yaml", PLAIN},
    {"good" CSI ".yaml", PLAIN},
    {"title.yaml", "title: \"a\\e]0;title\\a\"\n" PLAIN},
    {"raw.yaml", "title: " ESC "red\n" PLAIN},
    {"key.yaml", "\"\\e[31mkey\": 1\n" PLAIN},
    {"value.yaml", "batch: {size: \"\\e[31mx\"}\n" PLAIN},
    {"model.yaml", "model: {name: \"\\e[31mm\", " LAYERS},
    {"bad" ESC ".yaml", "model: {name: m\n"},
    {"recipe.lua", "print('" ESC "')\nhr.note('\\27[31m')\nerror('\\27[31mx')\n"},
    {"lifetimes.csv", "id,lower,upper,size\n" ESC "x,0,1,5\n" ESC "x,0,1,5\n"},
    {"trace" ESC ".csv", "time_ns,step,event,address,requested_bytes,allocated_bytes,tensor\n"
                         "1,0,alloc,256,100,256," ESC "t\n2,0,alloc,512,100000,100096," ESC "u\n"},
};

static const char *const commands[] = {
    "presets",
    "presets --json",
    "plan @/good" ESC ".yaml",
    "plan @/good" CSI ".yaml --at-peak",
    "run @/good" ESC ".yaml --steps 1",
    "run @/good" ESC ".yaml --steps 1 --plain",
    "run @/good" ESC ".yaml --steps 1 --trace @/t" ESC ".csv",
    "compare @/good" ESC ".yaml demo",
    "config show @/good" ESC ".yaml",
    "config check @/bad" ESC ".yaml",
    "config check @/title.yaml",
    "config check @/raw.yaml",
    "config check @/key.yaml",
    "config check @/value.yaml",
    "config check @/model.yaml",
    "plan @/none" ESC,
    "plan no" ESC "ne",
    "plan demo -s batch.size=" ESC,
    "plan demo -s " ESC "=1",
    "plan demo --" ESC,
    "" ESC,
    "terms " ESC,
    "completion " ESC,
    "script @/recipe.lua",
    "pack @/lifetimes.csv",
    "replay @/trace" ESC ".csv",
    "replay @/trace" ESC ".csv -s device.vram=64KiB --style pytorch",
    "watch @/none" ESC,
};

static void make_files(void)
{
    char path[512];
    for (size_t k = 0; k < sizeof files / sizeof *files; k++) {
        (void)snprintf(path, sizeof path, "%s/%s", program_home(), files[k].name);
        for (char *slash = strchr(path + strlen(program_home()) + 1, '/'); slash != NULL;
             slash = strchr(slash + 1, '/')) {
            *slash = '\0';
            (void)mkdir(path, 0700);
            *slash = '/';
        }
        FILE *f = fopen(path, "w");
        ck_assert_msg(f != NULL && fputs(files[k].content, f) >= 0 && fclose(f) == 0, "%s", path);
    }
}

// The command with the folder of the files for each '@'.
static void name_folder(const char *command, char *words, size_t size)
{
    size_t used = 0;
    for (const char *c = command; *c != '\0'; c++) {
        const char one[2] = {*c, '\0'};
        used += (size_t)snprintf(words + used, size - used, "%s", *c == '@' ? program_home() : one);
        ck_assert_uint_lt(used, size);
    }
}

static void check_plain(const char *text, const char *words)
{
    for (const char *c = text; *c != '\0'; c++) {
        const unsigned char byte = (unsigned char)*c, next = (unsigned char)c[1];
        ck_assert_msg((byte >= ' ' || byte == '\n' || byte == '\t') && byte != 0x7F, "%s: byte %02x in %s",
                      words, byte, text);
        ck_assert_msg(byte != 0xC2 || next < 0x80 || next >= 0xA0, "%s: U+00%02X in %s", words, next, text);
    }
}

START_TEST(no_terminal_obeys_what_a_stranger_wrote)
{
    char words[512];
    make_files();
    name_folder(commands[_i], words, sizeof words);
    outcome o = program_run(words);
    check_plain(o.out, words);
    check_plain(o.err, words);
    outcome_deinit(&o);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("foreign");
    TCase *all = tcase_create("texts");
    tcase_add_loop_test(all, no_terminal_obeys_what_a_stranger_wrote, 0,
                        (int)(sizeof commands / sizeof *commands));
    suite_add_tcase(suite, all);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    program_remove_home();
    return failed != 0;
}
