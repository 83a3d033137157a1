// SPDX-License-Identifier: Apache-2.0
#ifndef TUI_SCREENS_MODEL_LAYERS_H
#define TUI_SCREENS_MODEL_LAYERS_H

#include "app/tui/screens/timeline.h"

byte_unit layer_unit(const app *a);    // one for all layers
uint32_t model_selected_layer(app *a); // HR_NO_ID: there is none

#endif
