// SPDX-License-Identifier: Apache-2.0
// What card it is.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "numbers.h"

static numbers_card card;

// Behind the colon of "key", or NULL.
static const char *value_of(const char *text, const char *key)
{
    char quoted[64];
    (void)snprintf(quoted, sizeof quoted, "\"%s\"", key);
    const char *at = strstr(text, quoted);
    if (at == NULL) {
        return NULL;
    }
    at += strlen(quoted);
    at += strspn(at, " \t\r\n");
    return *at == ':' ? at + 1 + strspn(at + 1, " \t\r\n") : NULL;
}

static bool read_count(const char *text, const char *key, int64_t *out)
{
    const char *at = value_of(text, key);
    char *end = NULL;
    *out = at == NULL ? 0 : strtoll(at, &end, 10);
    if (at == NULL || end == at || *out < 0 ||
        (*end != ',' && *end != '}' && strchr(" \t\r\n", *end) == NULL)) {
        (void)fprintf(
            stderr,
            "card of numbers: HEADROOM_NUMBERS needs a count under \"%s\", like a file of presets/cards\n",
            key);
        return false;
    }
    return true;
}

static void read_name(const char *text)
{
    const char *at = value_of(text, "deviceName");
    const char *end = at != NULL && *at == '"' ? strchr(at + 1, '"') : NULL;
    const size_t length = end == NULL ? 0 : (size_t)(end - at - 1);
    (void)snprintf(card.name, sizeof card.name, "%.*s", (int)(length < sizeof card.name ? length : 0),
                   length > 0 ? at + 1 : "");
}

static bool read_counts(const char *text)
{
    int64_t bytes = 0;
    const struct {
        const char *key;
        int64_t *count;
    } rows[] = {
        {"deviceVer", &card.capability},
        {"multiProcessorCount", &card.multiprocessors},
        {"maxThreadsPerSM", &card.threads_per_sm},
        {"maxCtasPerSM", &card.blocks_per_sm},
        {"maxSharedMemoryPerBlock", &card.shared_per_block},
        {"maxSharedMemoryPerBlockOptin", &card.shared_optin},
        {"reservedSharedMemoryPerBlock", &card.shared_reserved},
        {"maxRegistersPerSM", &card.registers_per_sm},
        {"regsPerBlock", &card.registers_per_block},
        {"smClockRateKHz", &card.clock_khz},
        {"memClockRateKHz", &card.memory_clock_khz},
        {"l2CacheSize", &card.l2_bytes},
        {"totalGlobalMem", &bytes},
    };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        if (!read_count(text, rows[k].key, rows[k].count)) {
            return false;
        }
    }
    if ((uint64_t)bytes > MEMORY_MOST_BYTES) {
        (void)fputs("card of numbers: HEADROOM_NUMBERS has more than 64 TiB under \"totalGlobalMem\"\n",
                    stderr);
        return false;
    }
    card.memory_bytes = (uint64_t)bytes;
    return true;
}

static bool read_context(void)
{
    const char *text = getenv("HEADROOM_NUMBERS_CONTEXT");
    char *end = NULL;
    card.context_bytes = text == NULL ? 0 : strtoull(text, &end, 10);
    if (text != NULL &&
        (end == text || *end != 0 || *text == '-' || card.context_bytes > card.memory_bytes)) {
        (void)fprintf(
            stderr,
            "card of numbers: HEADROOM_NUMBERS_CONTEXT needs bytes, at most the card's %llu, had \"%s\"\n",
            (unsigned long long)card.memory_bytes, text);
        return false;
    }
    return true;
}

static void read_card(void)
{
    const char *text = getenv("HEADROOM_NUMBERS");
    if (text == NULL) {
        (void)fputs(
            "card of numbers: needs HEADROOM_NUMBERS, the text of a file like those of presets/cards\n",
            stderr);
        return;
    }
    if (read_counts(text) && read_context()) {
        read_name(text);
        card.properties = strdup(text);
    }
}

const numbers_card *the_card(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, read_card);
    return &card;
}
