// SPDX-License-Identifier: Apache-2.0
// The workbench on the scripted engine, for looking at it: fake_workbench [--ascii] [--no-color] [--theme NAME].
#include <string.h>

#include "app/tui/tui.h"
#include "tests/tui/fake_engine.h"

int main(int argc, char **argv)
{
    tui_options options = {.mouse = true};
    for (int i = 1; i < argc; i++) {
        options.ascii = options.ascii || strcmp(argv[i], "--ascii") == 0;
        options.no_color = options.no_color || strcmp(argv[i], "--no-color") == 0;
        if (strcmp(argv[i], "--theme") == 0 && i + 1 < argc) {
            options.theme = argv[++i];
        }
    }
    const hr_preset *preset = fake_preset();
    return tui_run(preset, hr_preset_knobs(preset), &options);
}
