// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>

#include "app/tui/feed/feed.h"

bool feed_send(feed *f, const hr_command *command)
{
    if (feed_engine_lives(f) && hr_session_send(f->session, command)) {
        return true;
    }
    const char *watched = feed_why_not_command(f);
    feed_say(f, MESSAGE_ERROR, "%s",
             watched != NULL        ? watched
             : feed_engine_lives(f) ? "the engine is busy and took no command: try again"
                                    : "no engine runs: R starts it again, p chooses a preset");
    return false;
}

bool feed_send_text(feed *f, hr_command_kind kind, hr_knob_id knob, const char *text)
{
    hr_command command = {.version = HR_EVENT_VERSION, .kind = (uint16_t)kind, .knob = (uint32_t)knob};
    snprintf(command.text, sizeof command.text, "%s", text);
    return feed_send(f, &command);
}

bool feed_send_plain(feed *f, hr_command_kind kind, uint64_t count)
{
    hr_command command = {.version = HR_EVENT_VERSION, .kind = (uint16_t)kind, .count = count};
    return feed_send(f, &command);
}
