// SPDX-License-Identifier: Apache-2.0
// What a typed chunk, or a recipe, gives back. A __tostring of it may print, raise or hang: the text is written when it is
// whole.
#include <stdlib.h>

#include "app/lua/console_show.h"
#include "app/lua/script.h"

static void close_showing(script *s)
{
    if (s->showing != NULL) {
        (void)fclose(s->showing);
        s->showing = NULL;
    }
}

void script_forget_shown(script *s)
{
    close_showing(s);
    free(s->showing_text);
    s->showing_text = NULL;
    s->showing_length = 0;
}

int script_show(lua_State *L)
{
    script *s = script_of(L);
    script_forget_shown(s);
    s->showing = open_memstream(&s->showing_text, &s->showing_length);
    if (s->showing == NULL) {
        return script_error(L, "no host memory to show the values");
    }
    console_show(L, 1, s->showing);
    close_showing(s);
    s->printing = 1;
    script_print_text(s->out, s->showing_text, s->showing_length);
    s->printing = 0;
    script_forget_shown(s);
    return 0;
}
