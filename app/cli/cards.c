// SPDX-License-Identifier: Apache-2.0
// cards: those that can be named, sorted and filtered, one of them as a file that can be changed, or which of them hold a preset or a trace.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "headroom/card.h"
#include "headroom/file_kind.h"
#include "headroom/preset.h"
#include "headroom/report.h"
#include "headroom/units.h"

#include "app/cli/cards_fit.h"
#include "app/cli/cards_fit_trace.h"
#include "app/cli/cli.h"
#include "app/cli/emit.h"
#include "app/cli/options.h"
#include "app/cli/say.h"

// ---- which, and in which order --------------------------------------------------------------------------------

static int by_name(const void *a, const void *b)
{
    return strcmp(((const hr_card *)a)->name, ((const hr_card *)b)->name);
}

static int most_first(double a, double b, const void *x, const void *y)
{
    return a > b ? -1 : a < b ? 1 : by_name(x, y);
}

static int by_vram(const void *a, const void *b)
{
    return most_first((double)((const hr_card *)a)->vram_bytes, (double)((const hr_card *)b)->vram_bytes, a,
                      b);
}

static int by_bandwidth(const void *a, const void *b)
{
    return most_first(((const hr_card *)a)->memory_bytes_per_second,
                      ((const hr_card *)b)->memory_bytes_per_second, a, b);
}

static double best_flops(const hr_card *card)
{
    return card->float16_flops > card->float32_flops ? card->float16_flops : card->float32_flops;
}

static int by_flops(const void *a, const void *b)
{
    return most_first(best_flops(a), best_flops(b), a, b);
}

static int by_year(const void *a, const void *b)
{
    return most_first(((const hr_card *)a)->year, ((const hr_card *)b)->year, a, b);
}

static const struct {
    const char *name;
    int (*compare)(const void *a, const void *b);
} orders[] = {{"vram", by_vram},
              {"bandwidth", by_bandwidth},
              {"flops", by_flops},
              {"year", by_year},
              {"name", by_name}};
enum { ORDER_COUNT = sizeof orders / sizeof *orders };

typedef struct choice {
    int (*compare)(const void *a, const void *b);
    const char *family; // NULL: all
    uint64_t least_bytes;
    bool reverse;
    // Those left out that have less than a tenth less: a card sold as one of 24 GB often has not quite 24 GiB.
    size_t near_count;
    uint64_t near_bytes; // of the smallest of them
} choice;

static hr_status read_order(const cli_args *args, choice *c, hr_err *err)
{
    const char *wanted = cli_given(args, APP_SORT) ? args->value[APP_SORT] : orders[0].name;
    for (size_t k = 0; k < ORDER_COUNT; k++) {
        if (strcmp(orders[k].name, wanted) == 0) {
            c->compare = orders[k].compare;
            return HR_OK;
        }
    }
    hr_status status =
        HR_FAIL(err, USAGE, "--sort needs vram, bandwidth, flops, year or name, had '%.32s'", wanted);
    hr_err_try(err, "headroom cards --sort bandwidth");
    return status;
}

static hr_status read_choice(const cli_args *args, choice *c, hr_err *err)
{
    *c = (choice){.family = cli_given(args, APP_FAMILY) ? args->value[APP_FAMILY] : NULL,
                  .reverse = cli_given(args, APP_REVERSE)};
    HR_TRY(read_order(args, c, err));
    const uint64_t least_sense_bytes = 1 << 20; // "80" would be 80 bytes, and every card
    if (cli_given(args, APP_MIN_VRAM) &&
        (!hr_bytes_parse(args->value[APP_MIN_VRAM], &c->least_bytes) || c->least_bytes < least_sense_bytes)) {
        hr_status status = HR_FAIL(err, USAGE, "--min-vram needs a size such as 24GiB, had '%.32s'",
                                   args->value[APP_MIN_VRAM]);
        hr_err_try(err, "headroom cards --min-vram 24GiB");
        return status;
    }
    return HR_OK;
}

static bool is_of_family(const choice *c, const hr_card *card)
{
    return c->family == NULL || strcmp(c->family, card->family) == 0;
}

static bool is_chosen(const choice *c, const hr_card *card)
{
    return is_of_family(c, card) && card->vram_bytes >= c->least_bytes;
}

static void note_near(choice *c, const hr_card *card)
{
    const uint64_t bytes = card->vram_bytes;
    if (is_of_family(c, card) && bytes < c->least_bytes && c->least_bytes - bytes < c->least_bytes / 10) {
        c->near_bytes = c->near_count == 0 || bytes < c->near_bytes ? bytes : c->near_bytes;
        c->near_count++;
    }
}

// "ampere, ada, …" of the cards, each once.
static void list_families(const hr_card *cards, size_t count, char *list, size_t size)
{
    size_t length = 0;
    list[0] = '\0';
    for (size_t k = 0; k < count; k++) {
        bool known = cards[k].family[0] == '\0';
        for (size_t i = 0; i < k && !known; i++) {
            known = strcmp(cards[i].family, cards[k].family) == 0;
        }
        if (!known && length < size) {
            length += (size_t)snprintf(list + length, size - length, "%s%s", length > 0 ? ", " : "",
                                       cards[k].family);
        }
    }
}

static hr_status refuse_family(const hr_card *cards, size_t count, const char *family, hr_err *err)
{
    char list[160];
    list_families(cards, count, list, sizeof list);
    hr_status status = HR_FAIL(err, USAGE, "no card is of the family '%.32s'; there are %s", family, list);
    hr_err_try(err, "headroom cards --family ampere");
    return status;
}

// Leaves the chosen ones, in order.
static hr_status choose(hr_card *cards, size_t *count, choice *c, hr_err *err)
{
    size_t kept = 0;
    bool has_family = c->family == NULL;
    for (size_t k = 0; k < *count; k++) {
        has_family = has_family || strcmp(cards[k].family, c->family) == 0;
        note_near(c, &cards[k]);
    }
    if (!has_family) {
        return refuse_family(cards, *count, c->family, err);
    }
    for (size_t k = 0; k < *count; k++) {
        if (is_chosen(c, &cards[k])) {
            cards[kept++] = cards[k];
        }
    }
    qsort(cards, kept, sizeof *cards, c->compare);
    for (size_t k = 0; c->reverse && 2 * k + 1 < kept; k++) {
        const hr_card first = cards[k];
        cards[k] = cards[kept - 1 - k];
        cards[kept - 1 - k] = first;
    }
    *count = kept;
    return HR_OK;
}

typedef struct loaded {
    hr_card *cards;
    hr_err *errors; // of files that are no cards
    size_t count, error_count;
} loaded;

static void unload(loaded *all)
{
    free(all->cards);
    free(all->errors);
}

// A file that is broken does not hide the others.
static hr_status load_all(loaded *all, hr_err *err)
{
    hr_preset_entry *entries = NULL;
    size_t count = 0;
    *all = (loaded){0};
    HR_TRY(hr_preset_list("cards", &entries, &count, err));
    all->cards = calloc(count + 1, sizeof *all->cards);
    all->errors = calloc(count + 1, sizeof *all->errors);
    const bool has_room = all->cards != NULL && all->errors != NULL;
    hr_status status = has_room ? HR_OK : HR_FAIL(err, NOMEM, "no host memory for %zu cards", count);
    for (size_t k = 0; k < count && status == HR_OK; k++) {
        hr_err *error = &all->errors[all->error_count];
        const hr_status loads = hr_card_load(entries[k].name, &all->cards[all->count], error);
        all->count += loads == HR_OK;
        all->error_count += loads != HR_OK;
    }
    hr_preset_list_free(entries);
    if (status != HR_OK) {
        unload(all);
    }
    return status;
}

// ---- as a table -----------------------------------------------------------------------------------------------

// What the allocator may take of the whole card.
static uint64_t default_limit(const hr_card *card)
{
    hr_knobs knobs;
    uint64_t limit_bytes = 0;
    hr_knobs_init(&knobs);
    return hr_device_limit_bytes(&knobs, card, &limit_bytes, NULL) == HR_OK ? limit_bytes : 0;
}

static void print_card(const hr_card *card)
{
    char vram[HR_BYTES_TEXT_MAX], limit[HR_BYTES_TEXT_MAX], year[12];
    (void)snprintf(year, sizeof year, "%" PRIu32, card->year);
    printf("%-21s %9s %9s %4.0f %6.1f %6.1f %2" PRIu32 ".%" PRIu32 " %4s %s\n", card->name,
           hr_bytes_human(card->vram_bytes, vram), hr_bytes_human(default_limit(card), limit),
           card->memory_bytes_per_second * 1e-9, card->float32_flops * 1e-12, best_flops(card) * 1e-12,
           card->compute_major, card->compute_minor, card->year > 0 ? year : "", card->family);
}

// In whole MiB, rounded down, so that the value is one that lists them.
static void print_near(const choice *c)
{
    char asked[HR_BYTES_TEXT_MAX], least[HR_BYTES_TEXT_MAX], value[HR_BYTES_TEXT_MAX];
    const uint64_t mib = 1 << 20;
    if (c->near_count > 0) {
        printf("\n%zu more %s less than 10 %% below %s (from %s on):\n--min-vram %s\n", c->near_count,
               c->near_count == 1 ? "is" : "are", hr_bytes_human(c->least_bytes, asked),
               hr_bytes_human(c->near_bytes, least), hr_bytes_exact(c->near_bytes / mib * mib, value));
    }
}

static void print_cards(const hr_card *cards, size_t count, const choice *c)
{
    puts("name                       vram     limit GB/s   fp32   fp16   cc year family");
    for (size_t k = 0; k < count; k++) {
        print_card(&cards[k]);
    }
    puts("\nlimit: what TensorFlow's allocator would take; cc: compute capability;\n"
         "fp32, fp16: TFLOP/s of float32, and of float16 products summed in float32.\n"
         "Also `unlimited`: no limit, with the times of an A100. A card of your own:\n"
         "headroom cards NAME >mine.yaml, then -s device.card=./mine.yaml; or in one word\n"
         "-s device.card=NAME,vram=12GiB.");
    print_near(c);
}

// ---- as JSON --------------------------------------------------------------------------------------------------

static void emit_rate(emitter *e, const char *key, double per_second)
{
    if (per_second > 0) {
        emit_real(e, key, per_second, EMIT_EXACT);
    } else {
        emit_null(e, key);
    }
}

static void print_card_json(emitter *e, const hr_card *card)
{
    char capability[16];
    (void)snprintf(capability, sizeof capability, "%" PRIu32 ".%" PRIu32, card->compute_major,
                   card->compute_minor);
    emit_row(e, NULL);
    emit_text(e, "name", card->name);
    emit_text(e, "title", card->title);
    emit_text(e, "family", card->family[0] != '\0' ? card->family : NULL);
    emit_count(e, "year", card->year > 0 ? card->year : HR_NONE);
    emit_count(e, "multiprocessors", card->multiprocessors > 0 ? card->multiprocessors : HR_NONE);
    emit_count(e, "vram_bytes", card->vram_bytes);
    emit_count(e, "context_bytes", card->context_bytes);
    emit_count(e, "limit_bytes", default_limit(card));
    emit_count(e, "granularity_bytes", card->granularity_bytes);
    emit_text(e, "compute_capability", capability);
    emit_real(e, "memory_bytes_per_second", card->memory_bytes_per_second, EMIT_EXACT);
    emit_real(e, "link_bytes_per_second", card->link_bytes_per_second, EMIT_EXACT);
    emit_real(e, "float32_flops", card->float32_flops, EMIT_EXACT);
    emit_rate(e, "tf32_flops", card->tf32_flops);
    emit_rate(e, "float16_flops", card->float16_flops);
    emit_rate(e, "bfloat16_flops", card->bfloat16_flops);
    emit_rate(e, "float64_flops", card->float64_flops);
    emit_text(e, "source", card->source[0] != '\0' ? card->source : NULL);
    emit_end_object(e);
}

static void print_cards_json(const hr_card *cards, size_t count)
{
    emitter e = {.out = stdout};
    emit_array(&e, NULL);
    for (size_t k = 0; k < count; k++) {
        print_card_json(&e, &cards[k]);
    }
    emit_end_array(&e);
}

// ---- one, as a file -------------------------------------------------------------------------------------------

static void print_rate(const char *key, double per_second)
{
    if (per_second > 0) {
        printf("%s: %.10g\n", key, per_second);
    }
}

static void print_size(const char *key, uint64_t bytes)
{
    char exact[HR_BYTES_TEXT_MAX];
    printf("%s: %s\n", key, hr_bytes_exact(bytes, exact));
}

// `key: "…"`, from an untrusted file; nothing where there is nothing.
static void print_text(const char *key, const char *words)
{
    if (words[0] == '\0') {
        return;
    }
    printf("%s: \"", key);
    for (const char *c = words; *c != '\0'; c++) {
        printf(*c == '"' || *c == '\\' ? "\\%c" : "%c", *c);
    }
    puts("\"");
}

// What hr_card_load reads back as the same card.
static void print_file(const hr_card *card)
{
    printf("# -s device.card=./FILE.yaml, or below presets/cards in $XDG_DATA_HOME/headroom, by its name.\n"
           "# FLOP/s are dense, with float32 accumulation; a rate that is missing is not native.\n");
    print_text("title", card->title);
    print_text("source", card->source);
    print_text("family", card->family);
    print_rate("year", card->year);
    print_rate("multiprocessors", card->multiprocessors);
    if (hr_limit_is_none(card->vram_bytes)) {
        puts("vram: unlimited");
    } else {
        print_size("vram", card->vram_bytes);
    }
    print_size("context", card->context_bytes);
    print_size("granularity", card->granularity_bytes);
    printf("compute_capability: %" PRIu32 ".%" PRIu32 "\n", card->compute_major, card->compute_minor);
    print_rate("memory_bytes_per_second", card->memory_bytes_per_second);
    print_rate("link_bytes_per_second", card->link_bytes_per_second);
    print_rate("launch_seconds", card->launch_seconds);
    print_rate("float32_flops", card->float32_flops);
    print_rate("tf32_flops", card->tf32_flops);
    print_rate("float16_flops", card->float16_flops);
    print_rate("bfloat16_flops", card->bfloat16_flops);
    print_rate("float64_flops", card->float64_flops);
    print_rate("vector_float16_flops", card->vector_float16_flops);
    print_rate("vector_bfloat16_flops", card->vector_bfloat16_flops);
    print_rate("vector_float64_flops", card->vector_float64_flops);
}

// ---- the command ----------------------------------------------------------------------------------------------

// The knob's advice, as this command takes it.
static void advise_here(hr_err *err)
{
    static const char knob[] = "-s device.card=";
    char words[sizeof err->hint];
    if (strncmp(err->hint, knob, sizeof knob - 1) == 0) {
        (void)snprintf(words, sizeof words, "%s", err->hint + sizeof knob - 1);
        hr_err_try(err, "headroom cards %s", words);
    }
}

static int show_one(const cli_args *args)
{
    hr_card card;
    hr_err err;
    if (hr_card_load(args->words[0], &card, &err) != HR_OK) {
        advise_here(&err);
        return say_error(&err, cli_given(args, APP_JSON));
    }
    if (cli_given(args, APP_JSON)) {
        emitter e = {.out = stdout};
        print_card_json(&e, &card);
    } else {
        print_file(&card);
    }
    return 0;
}

static int show_all(const cli_args *args)
{
    choice wanted;
    loaded all = {0};
    hr_err err;
    int exit_code = 0;
    hr_status status = read_choice(args, &wanted, &err);
    status = status == HR_OK ? load_all(&all, &err) : status;
    if (status != HR_OK) {
        return say_error(&err, cli_given(args, APP_JSON));
    }
    if (choose(all.cards, &all.count, &wanted, &err) != HR_OK) {
        exit_code = say_error(&err, cli_given(args, APP_JSON));
    } else if (cli_given(args, APP_FIT)) {
        const bool is_trace = hr_file_kind_of(args->value[APP_FIT]) == HR_FILE_TRACE;
        exit_code = (is_trace ? cards_fit_trace : cards_fit)(args, all.cards, all.count);
    } else if (cli_given(args, APP_JSON)) {
        print_cards_json(all.cards, all.count);
    } else {
        print_cards(all.cards, all.count, &wanted);
    }
    for (size_t k = 0; k < all.error_count; k++) {
        exit_code = say_error(&all.errors[k], false); // one document is on stdout already
    }
    unload(&all);
    return exit_code;
}

static hr_status check_options(const cli_args *args, hr_err *err)
{
    if (cli_given(args, APP_FIT) && args->word_count > 0) {
        const hr_status status =
            HR_FAIL(err, USAGE, "--fit is about many cards, had one: '%.48s'", args->words[0]);
        hr_err_try(err, "headroom plan %.64s -s device.card=%.48s", args->value[APP_FIT], args->words[0]);
        return status;
    }
    for (unsigned k = 0; cli_given(args, APP_FIT) && k < args->set_count; k++) {
        if (strncmp(args->sets[k], "device.", 7) == 0 && strncmp(args->sets[k], "device.kind=", 12) != 0) {
            const hr_status status =
                HR_FAIL(err, USAGE, "--fit takes every card as it is, had -s %.64s", args->sets[k]);
            hr_err_try(err, "headroom plan %.64s -s %.64s", args->value[APP_FIT], args->sets[k]);
            return status;
        }
    }
    if (!cli_given(args, APP_FIT) &&
        (args->given & (APP_OPTION(SET) | APP_OPTION(TRUST) | APP_OPTION(OPAQUE))) != 0) {
        const hr_status status =
            HR_FAIL(err, USAGE, "--set, --trust and --opaque are about the preset of --fit, had none");
        hr_err_try(err, "headroom cards --fit demo -s batch.size=64");
        return status;
    }
    return HR_OK;
}

int cli_cards(int argc, char **argv)
{
    cli_args args;
    hr_err err;
    cli_next next = cli_parse(argc, argv, 1, &args, &err);
    if (next != CLI_GO_ON) {
        return next == CLI_DONE ? 0 : say_error(&err, cli_given(&args, APP_JSON));
    }
    if (check_options(&args, &err) != HR_OK) {
        return say_error(&err, cli_given(&args, APP_JSON));
    }
    return args.word_count > 0 ? show_one(&args) : show_all(&args);
}
