// SPDX-License-Identifier: Apache-2.0
// The workbench on the scripted engine, for looking at it: fake_workbench [--ascii] [--no-color] [--no-mouse]
// [--theme NAME] [--still]. Still: the engine never does anything.
#include <string.h>

#include "app/tui/shell/tui.h"
#include "tests/tui/fake_engine.h"

int main(int argc, char **argv)
{
    tui_options options = {.mouse = true};
    bool still = false;
    for (int i = 1; i < argc; i++) {
        options.ascii = options.ascii || strcmp(argv[i], "--ascii") == 0;
        options.no_color = options.no_color || strcmp(argv[i], "--no-color") == 0;
        options.mouse = options.mouse && strcmp(argv[i], "--no-mouse") != 0;
        still = still || strcmp(argv[i], "--still") == 0;
        if (strcmp(argv[i], "--theme") == 0 && i + 1 < argc) {
            options.theme = argv[++i];
        }
    }
    fake_engine_set_manual(still);
    const hr_preset *preset = fake_preset();
    return tui_run(preset, hr_preset_knobs(preset), &options);
}
