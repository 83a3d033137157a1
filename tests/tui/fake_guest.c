// SPDX-License-Identifier: Apache-2.0
// The guest of the scripted session: keeps the last order, and says what a test has it say.
#include <stdio.h>
#include <string.h>

#include "tests/tui/fake_engine.h"

static char said[1 << 18], ordered[HR_GUEST_TEXT_MAX];
static size_t said_bytes;
static unsigned interrupts;

void fake_guest_begin(void)
{
    said_bytes = interrupts = 0;
    ordered[0] = '\0';
}

void fake_guest_say(hr_guest_line kind, const char *line)
{
    if (strlen(line) + 3 > sizeof said - said_bytes) {
        return;
    }
    said_bytes += (size_t)snprintf(said + said_bytes, sizeof said - said_bytes, "%c%s\n", (char)kind, line);
}

const char *fake_guest_order(void)
{
    return ordered;
}

unsigned fake_guest_interrupts(void)
{
    return interrupts;
}

bool hr_session_order(hr_session *s, hr_guest_order order, const char *text)
{
    (void)s;
    (void)snprintf(ordered, sizeof ordered, "%d %s", (int)order, text);
    return true;
}

void hr_session_interrupt(hr_session *s)
{
    (void)s;
    interrupts++;
}

size_t hr_session_said(hr_session *s, uint64_t *cursor, char *out, size_t size)
{
    (void)s;
    const size_t bytes = *cursor < said_bytes ? said_bytes - (size_t)*cursor : 0;
    if (bytes == 0 || bytes >= size) {
        return 0;
    }
    memcpy(out, said + *cursor, bytes);
    out[bytes] = '\0';
    *cursor += bytes;
    return bytes;
}
