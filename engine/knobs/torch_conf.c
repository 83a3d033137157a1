// SPDX-License-Identifier: Apache-2.0
#include "knobs/torch_conf.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

#include "headroom/units.h"

#include "base/text.h"

enum { TOKEN_MAX = 64, SMALLEST_SEGMENT_MB = 10, PINNED_THREADS_MAX = 128 };

static const struct {
    const char *name;
    bool changes;
} options[] = {
#define X(name, text, changes) {text, (changes) != 0},
    TORCH_OPTION_MAP(X)
#undef X
};

const char *torch_option_name(torch_option option)
{
    return options[option].name;
}

const char *torch_conf_without_effect(const torch_conf *c, int *next)
{
    while (*next < TORCH_OPTIONS) {
        const int option = (*next)++;
        if (torch_conf_says(c, (torch_option)option) && !options[option].changes) {
            return options[option].name;
        }
    }
    return NULL;
}

torch_conf torch_conf_default(void)
{
    return (torch_conf){.large_segment_bytes = 20 * HR_MIB,
                        .max_split_bytes = UINT64_MAX,
                        .max_non_split_rounding_bytes = 20 * HR_MIB,
                        .fraction = 1};
}

// ---- tokens ---------------------------------------------------------------------------------------------------

// "key:[1:2]" is key : [ 1 : 2 ]; blanks are left out.
typedef struct scanner {
    const char *at;
    char token[TOKEN_MAX]; // "" at the end
    const char *key;       // of the option that is being read
    hr_err *err;
} scanner;

#define REFUSE(s, ...) HR_FAIL((s)->err, KNOB, __VA_ARGS__)

static hr_status step(scanner *s)
{
    size_t length = 0;
    for (; *s->at != '\0'; s->at++) {
        const bool is_mark = strchr(",:[]", *s->at) != NULL;
        if (is_mark && length > 0) {
            break;
        }
        if (isspace((unsigned char)*s->at)) {
            continue;
        }
        if (length + 1 == TOKEN_MAX) {
            return REFUSE(s, "a word of at most %d letters was needed, had '%.20s…'", TOKEN_MAX - 1,
                          s->token);
        }
        s->token[length++] = *s->at;
        s->token[length] = '\0';
        if (is_mark) {
            s->at++;
            break;
        }
    }
    s->token[length] = '\0';
    return HR_OK;
}

static bool is_token(const scanner *s, const char *word)
{
    return strcmp(s->token, word) == 0;
}

static hr_status expect(scanner *s, const char *mark)
{
    if (!is_token(s, mark)) {
        return REFUSE(s, "%s: needed '%s', had '%s'", s->key, mark, s->token);
    }
    return step(s);
}

// ---- values ---------------------------------------------------------------------------------------------------

static hr_status read_whole(scanner *s, uint64_t *out)
{
    int64_t value = 0;
    if (!text_to_int(s->token, &value) || value < 0) {
        return REFUSE(s, "%s: needed a whole number, had '%s'", s->key, s->token);
    }
    *out = (uint64_t)value;
    return step(s);
}

static hr_status read_bool(scanner *s, bool *out)
{
    *out = is_token(s, "True");
    if (!*out && !is_token(s, "False")) {
        return REFUSE(s, "%s: needed True or False, spelt like that, had '%s'", s->key, s->token);
    }
    return step(s);
}

static hr_status read_share(scanner *s, bool with_ends, double *out)
{
    if (!text_to_real(s->token, out) || !(with_ends ? *out >= 0 && *out <= 1 : *out > 0 && *out < 1)) {
        return REFUSE(s, "%s: needed a number %s, had '%s'", s->key,
                      with_ends ? "from 0 to 1" : "between 0 and 1, both left out", s->token);
    }
    return step(s);
}

// PyTorch takes 0 and then fails at the first request; as a share of the card it would read as none asked for.
static hr_status read_fraction(scanner *s, double *out)
{
    HR_TRY(read_share(s, true, out));
    return *out > 0 ? HR_OK : REFUSE(s, "%s: 0 leaves no memory at all: needed more, or 1 for all", s->key);
}

static uint64_t bytes_of_mb(uint64_t mb)
{
    return mb < UINT64_MAX / HR_MIB ? mb * HR_MIB : UINT64_MAX;
}

// A size in MiB; −1 is PyTorch's way to say that there is no limit, where there can be none.
static hr_status read_mb(scanner *s, bool may_be_unlimited, uint64_t *bytes)
{
    uint64_t mb = 0;
    if (may_be_unlimited && is_token(s, "-1")) {
        *bytes = UINT64_MAX;
        return step(s);
    }
    HR_TRY(read_whole(s, &mb));
    *bytes = bytes_of_mb(mb);
    return HR_OK;
}

static bool is_power_of_two(uint64_t n)
{
    return n != 0 && (n & (n - 1)) == 0;
}

static hr_status check_divisions(const scanner *s, uint64_t value, bool may_be_zero)
{
    if (!is_power_of_two(value) && !(may_be_zero && value == 0)) {
        return REFUSE(s, "%s: the number of divisions must be a power of two%s, had %llu", s->key,
                      may_be_zero ? " or 0 (none)" : "", (unsigned long long)value);
    }
    if (value > UINT32_MAX) {
        return REFUSE(s, "%s: needed at most 2147483648 divisions, had %llu", s->key,
                      (unsigned long long)value);
    }
    return HR_OK;
}

static void fill(uint32_t *divisions, unsigned from, unsigned behind, uint32_t value)
{
    for (unsigned k = from; k < behind; k++) {
        divisions[k] = value;
    }
}

// The place of a size in MiB; sizes below the first or above the last stand for those.
static hr_status read_place(scanner *s, unsigned *place)
{
    uint64_t mb = 0;
    HR_TRY(read_whole(s, &mb));
    if (!is_power_of_two(mb)) {
        return REFUSE(s, "%s: sizes are powers of two in MiB, had %llu", s->key, (unsigned long long)mb);
    }
    const unsigned log2 = 63u - (unsigned)__builtin_clzll(mb);
    *place = log2 < TORCH_DIVISIONS ? log2 : TORCH_DIVISIONS - 1;
    return HR_OK;
}

// "256:1,512:2,>:8]": the first size stands for all below it too, '>' for all above the last one named.
static hr_status read_division_list(scanner *s, uint32_t *divisions)
{
    bool any = false;
    unsigned last = 0;
    while (!is_token(s, "]")) {
        uint64_t value = 0;
        unsigned place = last;
        const bool rest = is_token(s, ">");
        HR_TRY(rest ? step(s) : read_place(s, &place));
        HR_TRY(expect(s, ":"));
        HR_TRY(read_whole(s, &value));
        HR_TRY(check_divisions(s, value, true));
        fill(divisions,
             rest  ? last + 1
             : any ? place
                   : 0,
             rest ? TORCH_DIVISIONS : place + 1, (uint32_t)value);
        any = any || !rest;
        last = place;
        if (!is_token(s, "]")) {
            HR_TRY(expect(s, ","));
        }
    }
    return step(s);
}

static hr_status read_divisions(scanner *s, uint32_t *divisions)
{
    if (is_token(s, "[")) {
        HR_TRY(step(s));
        return read_division_list(s, divisions);
    }
    uint64_t value = 0;
    HR_TRY(read_whole(s, &value));
    HR_TRY(check_divisions(s, value, false));
    fill(divisions, 0, TORCH_DIVISIONS, (uint32_t)value);
    return HR_OK;
}

static hr_status read_backend(scanner *s)
{
    if (is_token(s, "cudaMallocAsync")) {
        hr_status status =
            REFUSE(s, "backend:cudaMallocAsync is another allocator, which has none of these options: needed "
                      "backend:native here, or allocator.kind=async and no configuration");
        hr_err_try(s->err, "-s allocator.kind=async");
        return status;
    }
    if (!is_token(s, "native")) {
        return REFUSE(s, "backend: needed native or cudaMallocAsync, had '%s'", s->token);
    }
    return step(s);
}

static hr_status read_pinned_threads(scanner *s)
{
    uint64_t count = 0;
    HR_TRY(read_whole(s, &count));
    if (!is_power_of_two(count) || count > PINNED_THREADS_MAX) {
        return REFUSE(s, "%s: needed a power of two, at most %d, had %llu", s->key, PINNED_THREADS_MAX,
                      (unsigned long long)count);
    }
    return HR_OK;
}

static hr_status read_pinned_reserve(scanner *s)
{
    uint64_t mb = 0;
    HR_TRY(read_whole(s, &mb));
    return mb > 0 ? HR_OK : REFUSE(s, "%s: needed more than 0, had 0", s->key);
}

// Address space is no memory: a share of the card, or GiB with a G behind.
static hr_status read_reserve(scanner *s)
{
    char number[TOKEN_MAX];
    double value = 0;
    (void)text_copy(number, sizeof number, s->token);
    const size_t length = strlen(number);
    if (length > 0 && (number[length - 1] == 'G' || number[length - 1] == 'g')) {
        number[length - 1] = '\0';
    }
    if (!text_to_real(number, &value) || !(value > 0) || isinf(value)) {
        return REFUSE(s, "%s: needed a share of the card such as 0.5, or a size such as 40G, had '%s'",
                      s->key, s->token);
    }
    return step(s);
}

static hr_status read_reserves(scanner *s)
{
    HR_TRY(expect(s, "["));
    while (!is_token(s, "]")) {
        HR_TRY(step(s)); // the class
        HR_TRY(expect(s, ":"));
        HR_TRY(read_reserve(s));
        if (!is_token(s, "]")) {
            HR_TRY(expect(s, ","));
        }
    }
    return step(s);
}

// ---- options --------------------------------------------------------------------------------------------------

static hr_status read_value(scanner *s, torch_option option, torch_conf *c)
{
    bool unused = false;
    switch (option) {
    case TORCH_BACKEND:
        return read_backend(s);
    case TORCH_EXPANDABLE_SEGMENTS:
        return read_bool(s, &c->expandable_segments);
    case TORCH_EXPANDABLE_SEGMENTS_RESERVE:
        return read_reserve(s);
    case TORCH_EXPANDABLE_SEGMENTS_RESERVE_BY_CLASS:
        return read_reserves(s);
    case TORCH_GARBAGE_COLLECTION_THRESHOLD:
        return read_share(s, false, &c->gc_threshold);
    case TORCH_LARGE_SEGMENT_SIZE:
        return read_mb(s, false, &c->large_segment_bytes);
    case TORCH_MAX_NON_SPLIT_ROUNDING:
        return read_mb(s, false, &c->max_non_split_rounding_bytes);
    case TORCH_MAX_SPLIT_SIZE:
        return read_mb(s, true, &c->max_split_bytes);
    case TORCH_PER_PROCESS_MEMORY_FRACTION:
        return read_fraction(s, &c->fraction);
    case TORCH_PINNED_NUM_REGISTER_THREADS:
        return read_pinned_threads(s);
    case TORCH_PINNED_RESERVE_SEGMENT_SIZE:
        return read_pinned_reserve(s);
    case TORCH_ROUNDUP_POWER2_DIVISIONS:
        return read_divisions(s, c->divisions);
    case TORCH_THROW_ON_CUDAMALLOC_OOM:
        return read_bool(s, &c->throws_early);
    case TORCH_GRAPH_CAPTURE_RECORD_STREAM_REUSE:
    case TORCH_PINNED_FREE_CATCH_ALL:
    case TORCH_PINNED_USE_BACKGROUND_THREADS:
    case TORCH_PINNED_USE_CUDA_HOST_REGISTER:
    case TORCH_RELEASE_LOCK_ON_CUDAMALLOC:
        return read_bool(s, &unused);
    case TORCH_OPTIONS:
        break;
    }
    return HR_OK;
}

static hr_status find_option(const scanner *s, torch_option *out)
{
    const char *names[TORCH_OPTIONS];
    for (int k = 0; k < TORCH_OPTIONS; k++) {
        names[k] = options[k].name;
        if (is_token(s, names[k])) {
            *out = (torch_option)k;
            return HR_OK;
        }
    }
    const char *meant = text_nearest(s->token, names, TORCH_OPTIONS);
    return REFUSE(s, "PyTorch has no option '%s'%s%s%s", s->token, meant == NULL ? "" : " — did you mean '",
                  meant == NULL ? "" : meant, meant == NULL ? "" : "'?");
}

static hr_status read_options(scanner *s, torch_conf *c)
{
    HR_TRY(step(s));
    while (s->token[0] != '\0') {
        torch_option option = TORCH_OPTIONS;
        HR_TRY(find_option(s, &option));
        s->key = options[option].name;
        HR_TRY(step(s));
        HR_TRY(expect(s, ":"));
        HR_TRY(read_value(s, option, c));
        c->said |= 1u << option;
        if (s->token[0] != '\0') {
            HR_TRY(expect(s, ","));
        }
    }
    return HR_OK;
}

static hr_status check_least(const scanner *s, const char *key, uint64_t bytes, uint64_t least_bytes)
{
    if (bytes < least_bytes) {
        return REFUSE(s, "%s: needed at least %llu (large_segment_size_mb), had %llu", key,
                      (unsigned long long)(least_bytes / HR_MIB), (unsigned long long)(bytes / HR_MIB));
    }
    return HR_OK;
}

hr_status torch_conf_parse(const char *typed, torch_conf *out, hr_err *err)
{
    torch_conf c = torch_conf_default();
    scanner s = {.at = typed, .key = "", .err = err};
    HR_TRY(read_options(&s, &c));
    if (c.large_segment_bytes <= SMALLEST_SEGMENT_MB * HR_MIB) {
        return REFUSE(&s, "large_segment_size_mb: needed more than %d, had %llu", SMALLEST_SEGMENT_MB,
                      (unsigned long long)(c.large_segment_bytes / HR_MIB));
    }
    if (!torch_conf_says(&c, TORCH_MAX_NON_SPLIT_ROUNDING)) {
        c.max_non_split_rounding_bytes = c.large_segment_bytes;
    }
    HR_TRY(check_least(&s, "max_split_size_mb", c.max_split_bytes, c.large_segment_bytes));
    HR_TRY(
        check_least(&s, "max_non_split_rounding_mb", c.max_non_split_rounding_bytes, c.large_segment_bytes));
    *out = c;
    return HR_OK;
}

hr_status torch_conf_parse_divisions(const char *typed, uint32_t divisions[TORCH_DIVISIONS], hr_err *err)
{
    uint32_t read[TORCH_DIVISIONS] = {0};
    scanner s = {.at = typed, .key = torch_option_name(TORCH_ROUNDUP_POWER2_DIVISIONS), .err = err};
    HR_TRY(step(&s));
    if (s.token[0] != '\0') {
        HR_TRY(read_divisions(&s, read));
    }
    if (s.token[0] != '\0') {
        return REFUSE(&s, "%s: needed one value, had '%s' behind it", s.key, s.token);
    }
    memcpy(divisions, read, sizeof read);
    return HR_OK;
}
