// SPDX-License-Identifier: Apache-2.0
#include "app/cli/page.h"

#include <langinfo.h>
#include <locale.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { COLUMNS_MIN = 80, COLUMNS_MAX = 200 };

unsigned page_columns(void)
{
    struct winsize size = {0};
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col < COLUMNS_MIN) {
        return COLUMNS_MIN;
    }
    return size.ws_col < COLUMNS_MAX ? size.ws_col : COLUMNS_MAX;
}

bool page_draws_blocks(const cli_args *args)
{
    return !cli_given(args, APP_ASCII) && setlocale(LC_CTYPE, "") != NULL &&
           strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
}

const char *page_shade(double share, bool blocks, const char *none)
{
    static const char *const shades[2][4] = {{":", "+", "%", "#"}, {"░", "▒", "▓", "█"}};
    if (share < 0.001) {
        return none;
    }
    return shades[blocks][share > 0.999 ? 3 : (int)(share * 3)];
}
