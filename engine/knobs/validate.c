// SPDX-License-Identifier: Apache-2.0
// The first constraint that knobs break, said with the values that they have.
#include <stdio.h>
#include <string.h>

#include "headroom/knobs.h"

static void say_value(const hr_knobs *knobs, hr_knob_id id, char *text, size_t size)
{
    char value[HR_KNOB_TEXT_MAX];
    const char *said = knobs == NULL ? "another value" : hr_knob_format(knobs, id, value);
    (void)snprintf(text, size, "%s", said[0] == '\0' ? "nothing" : said);
}

void hr_constraint_say(const hr_constraint *c, const hr_knobs *knobs, char *text, size_t size)
{
    size_t length = 0;
    text[0] = '\0';
    for (const char *at = c->reason; *at != '\0' && length + 1 < size;) {
        char key[64];
        const size_t plain = strcspn(at, "{");
        (void)snprintf(text + length, size - length, "%.*s", (int)plain, at);
        length += strlen(text + length);
        at += plain;
        if (*at == '{') {
            const size_t inner = strcspn(at + 1, "}");
            (void)snprintf(key, sizeof key, "%.*s", (int)inner, at + 1);
            say_value(knobs, hr_knob_find(key, NULL)->id, text + length, size - length);
            length += strlen(text + length);
            at += inner + 2;
        }
    }
}

hr_status hr_knobs_validate(const hr_knobs *knobs, hr_err *err)
{
    size_t count;
    const hr_constraint *constraints = hr_constraints(&count);
    for (size_t i = 0; i < count; i++) {
        if (constraints[i].broken(knobs)) {
            char sentence[HR_ERR_TEXT_MAX];
            if (err == NULL) { // nobody reads it
                return HR_CONSTRAINT;
            }
            hr_constraint_say(&constraints[i], knobs, sentence, sizeof sentence);
            hr_status status = HR_FAIL(err, CONSTRAINT, "%s", sentence);
            hr_err_try(err, "%s", constraints[i].hint);
            return status;
        }
    }
    return HR_OK;
}
