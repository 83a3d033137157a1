// SPDX-License-Identifier: Apache-2.0
// What export found, as "headroom.export/1" and as text for people, on stdout.
#ifndef APP_CLI_EXPORT_REPORT_H
#define APP_CLI_EXPORT_REPORT_H

#include "headroom/deploy.h"

void export_print_json(const hr_deploy *d, const hr_deploy_request *request);
// `preset` is the word on the command line.
void export_print_text(const char *preset, const hr_deploy *d, const hr_deploy_request *request);

#endif
