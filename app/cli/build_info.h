// SPDX-License-Identifier: Apache-2.0
// What this program was built from and with.
#ifndef APP_CLI_BUILD_INFO_H
#define APP_CLI_BUILD_INFO_H

// The version and one line for each build option.
void build_info_print(void);

#endif
