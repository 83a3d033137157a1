// SPDX-License-Identifier: Apache-2.0
// tf.train.Example: what is read is what an independent writer put into it, however it packed it; what is none is refused, and
// nothing is read beyond it.
#include <stdio.h>

#include "base/philox.h"
#include "data/crc32c.h"
#include "data/example.h"
#include "data/record_files.h"

typedef struct random_words {
    uint64_t next;
} random_words;

static uint32_t word(random_words *r, uint32_t below)
{
    uint32_t words[4];
    philox(philox_key_of(6, "records"), r->next++, 0, words);
    return words[0] % below;
}

// ---- sums -----------------------------------------------------------------------------------------------------

START_TEST(sums_are_the_published_ones)
{
    uint8_t bytes[1024];
    ck_assert_uint_eq(crc32c((const uint8_t *)"123456789", 9), 0xe3069283); // RFC 3720, B.4, as the next two
    memset(bytes, 0, 32);
    ck_assert_uint_eq(crc32c(bytes, 32), 0x8a9136aa);
    memset(bytes, 255, 32);
    ck_assert_uint_eq(crc32c(bytes, 32), 0x62a8ab43);
    ck_assert_uint_eq(crc32c_masked((const uint8_t *)"\x18\0\0\0\0\0\0\0", 8),
                      0x224b7fa3); // of tfevents files
    random_words r = {0};
    for (size_t k = 0; k < sizeof bytes; k++) {
        bytes[k] = (uint8_t)word(&r, 256);
    }
    for (uint32_t round = 0; round < 2000; round++) {
        const size_t at = word(&r, 64), count = word(&r, round % 2 == 0 ? 40 : 900);
        ck_assert_uint_eq(crc32c(bytes + at, count), plain_crc32c(bytes + at, count));
        ck_assert_uint_eq(crc32c_plain(bytes + at, count), plain_crc32c(bytes + at, count));
    }
}
END_TEST

// ---- examples -------------------------------------------------------------------------------------------------

enum { FEATURES_MOST = 6, VALUES_MOST = 9 };

typedef struct wanted {
    char name[12];
    feature_kind kind;
    uint32_t count;
    int64_t ints[VALUES_MOST];
    float floats[VALUES_MOST];
    uint8_t bytes[VALUES_MOST];
    size_t bytes_count;
} wanted;

// A field that none of the messages has.
static void maybe_unknown(random_words *r, made *m)
{
    static const uint8_t zeros[8] = {0};
    if (word(r, 4) != 0) {
        return;
    }
    const uint32_t number = 4 + word(r, 3000), types[] = {0, 1, 2, 5}, type = types[word(r, 4)];
    wire_varint(m, number << 3 | type);
    if (type == 0) {
        wire_varint(m, word(r, UINT32_MAX));
    } else if (type == 2) {
        const uint32_t count = word(r, 5);
        wire_varint(m, count);
        made_add(m, zeros, count);
    } else {
        made_add(m, zeros, type == 1 ? 8 : 4);
    }
}

// Whole numbers of all sizes, in runs of any length, each packed or not.
static void random_ints(random_words *r, made *list, wanted *w)
{
    for (uint32_t done = 0; done < w->count;) {
        const uint32_t run = 1 + word(r, w->count - done);
        const bool packed = word(r, 2) == 0;
        made values = {0};
        for (uint32_t k = 0; k < run; k++, done++) {
            w->ints[done] =
                (int64_t)((uint64_t)word(r, UINT32_MAX) << 32 | word(r, UINT32_MAX)) >> word(r, 64);
            if (!packed) {
                wire_varint(&values, 1 << 3 | 0);
            }
            wire_varint(&values, (uint64_t)w->ints[done]);
        }
        if (packed) {
            wire_message(list, 1, values.bytes, values.count);
        } else {
            made_add(list, values.bytes, values.count);
        }
        made_free(&values);
        maybe_unknown(r, list);
    }
}

static void random_floats(random_words *r, made *list, wanted *w)
{
    for (uint32_t done = 0; done < w->count;) {
        const uint32_t run = 1 + word(r, w->count - done);
        for (uint32_t k = 0; k < run; k++) {
            w->floats[done + k] = (float)word(r, UINT32_MAX) / 7 - 1e8f;
        }
        if (word(r, 2) == 0) {
            wire_message(list, 1, w->floats + done, run * sizeof *w->floats);
        } else {
            for (uint32_t k = 0; k < run; k++) {
                wire_varint(list, 1 << 3 | 5);
                made_add(list, &w->floats[done + k], sizeof *w->floats);
            }
        }
        done += run;
        maybe_unknown(r, list);
    }
}

static void random_list(random_words *r, made *list, wanted *w)
{
    w->count = word(r, VALUES_MOST);
    if (w->kind == FEATURE_INTS) {
        random_ints(r, list, w);
    } else if (w->kind == FEATURE_FLOATS) {
        random_floats(r, list, w);
    }
    for (uint32_t k = 0; k < w->count && w->kind == FEATURE_BYTES; k++) {
        uint8_t bytes[VALUES_MOST] = {(uint8_t)word(r, 256), (uint8_t)word(r, 256)};
        const size_t count = word(r, VALUES_MOST);
        wire_message(list, 1, bytes, count);
        if (k == 0) {
            memcpy(w->bytes, bytes, sizeof bytes);
            w->bytes_count = count;
        }
    }
}

static void random_feature(random_words *r, made *features, wanted *w, uint32_t number)
{
    made list = {0}, value = {0}, entry = {0};
    *w = (wanted){.kind = (feature_kind)word(r, 4)};
    (void)snprintf(w->name, sizeof w->name, "f%u", number);
    if (w->kind != FEATURE_EMPTY) {
        random_list(r, &list, w);
        maybe_unknown(r, &value);
        wire_message(&value, (uint32_t)w->kind, list.bytes, list.count);
    }
    const bool name_first = word(r, 2) == 0;
    for (int k = 0; k < 2; k++) {
        if ((k == 0) == name_first) {
            wire_message(&entry, 1, w->name, strlen(w->name));
        } else {
            wire_message(&entry, 2, value.bytes, value.count);
        }
        maybe_unknown(r, &entry);
    }
    wire_message(features, 1, entry.bytes, entry.count);
    maybe_unknown(r, features);
    made_free(&list);
    made_free(&value);
    made_free(&entry);
}

static void assert_feature(const feature *f, const wanted *w)
{
    ck_assert(feature_is_named(f, w->name));
    ck_assert_int_eq(f->kind, w->kind);
    ck_assert_uint_eq(f->count, w->count);
    if (f->kind == FEATURE_INTS) {
        feature_ints c = feature_ints_begin(f);
        int64_t value;
        for (uint32_t k = 0; k < w->count; k++) {
            ck_assert(feature_ints_next(&c, &value));
            ck_assert_int_eq(value, w->ints[k]);
        }
        ck_assert(!feature_ints_next(&c, &value));
    } else if (f->kind == FEATURE_FLOATS) {
        float values[VALUES_MOST] = {0};
        feature_floats(f, values);
        ck_assert_mem_eq(values, w->floats, w->count * sizeof *values);
    } else if (f->kind == FEATURE_BYTES) {
        const wire_span bytes = feature_bytes(f);
        ck_assert_int_eq(bytes.end - bytes.at, (ptrdiff_t)w->bytes_count);
        ck_assert(w->bytes_count == 0 || memcmp(bytes.at, w->bytes, w->bytes_count) == 0);
    }
}

// An Example in one or several pieces, as protobuf allows it.
static made random_example(random_words *r, wanted w[FEATURES_MOST], uint32_t *count)
{
    made example = {0};
    *count = word(r, FEATURES_MOST + 1);
    for (uint32_t done = 0; done < *count;) {
        made features = {0};
        for (uint32_t run = 1 + word(r, *count - done); run > 0; run--, done++) {
            random_feature(r, &features, &w[done], done);
        }
        wire_message(&example, 1, features.bytes, features.count);
        maybe_unknown(r, &example);
        made_free(&features);
    }
    return example;
}

START_TEST(an_example_is_what_was_written_however_it_is_packed)
{
    random_words r = {0};
    for (uint32_t round = 0; round < 1500; round++) {
        static wanted w[FEATURES_MOST];
        uint32_t count, seen = 0;
        made example = random_example(&r, w, &count);
        example_cursor c = example_begin(example.bytes, (uint32_t)example.count);
        feature f;
        bool good;
        while (example_next(&c, &f, &good)) {
            ck_assert_uint_lt(seen, count);
            assert_feature(&f, &w[seen++]);
        }
        ck_assert(good);
        ck_assert_uint_eq(seen, count);
        made_free(&example);
    }
}
END_TEST

// Goes through all features and all of their values.
static bool read_all(const uint8_t *bytes, size_t count)
{
    example_cursor c = example_begin(bytes, (uint32_t)count);
    feature f;
    bool good;
    while (example_next(&c, &f, &good)) {
        feature_ints ints = feature_ints_begin(&f);
        uint32_t values = 0;
        float *floats = malloc((f.count + 1) * sizeof *floats);
        for (int64_t value; f.kind == FEATURE_INTS && feature_ints_next(&ints, &value);) {
            values++;
        }
        ck_assert(f.kind != FEATURE_INTS || values == f.count);
        if (f.kind == FEATURE_FLOATS) {
            feature_floats(&f, floats);
        } else if (f.kind == FEATURE_BYTES) {
            const wire_span s = feature_bytes(&f);
            ck_assert(s.at >= bytes && s.end <= bytes + count);
        }
        free(floats);
    }
    return good;
}

START_TEST(an_example_cut_or_changed_anywhere_is_read_or_refused)
{
    random_words r = {.next = 1 << 24};
    for (uint32_t round = 0; round < 60; round++) {
        static wanted w[FEATURES_MOST];
        uint32_t features;
        made example = random_example(&r, w, &features);
        for (size_t at = 0; at < example.count; at++) {
            uint8_t *cut = malloc(at > 0 ? at : 1); // of exact size: a sanitizer sees each step beyond
            memcpy(cut, example.bytes, at);
            (void)read_all(cut, at);
            free(cut);
            const uint8_t was = example.bytes[at];
            example.bytes[at] = (uint8_t)word(&r, 256);
            (void)read_all(example.bytes, example.count);
            example.bytes[at] = was;
        }
        ck_assert(read_all(example.bytes, example.count));
        made_free(&example);
    }
}
END_TEST

START_TEST(what_is_no_example_is_refused)
{
    static const struct {
        const char *bytes;
        size_t count;
    } cases[] = {
        {"\x0a", 1},                                          // no length
        {"\x0a\x05", 2},                                      // longer than the message
        {"\x08\x01", 2},                                      // features that are a number
        {"\x0b\x0c", 2},                                      // a group
        {"\x02\x00", 2},                                      // field 0
        {"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", 11}, // a length of 65 bits
        {"\x0a\x02\x08\x01", 4},                              // an entry that is a number
        {"\x0a\x04\x0a\x02\x08\x01", 6},                      // a name that is a number
        {"\x0a\x06\x0a\x04\x12\x00\x12\x00", 8},              // two values
        {"\x0a\x08\x0a\x06\x12\x04\x0a\x00\x1a\x00", 10},     // two lists
        {"\x0a\x08\x0a\x06\x12\x04\x1a\x02\x0d\x00", 10},     // a whole number of 32 bits, cut
        {"\x0a\x08\x0a\x06\x12\x04\x0a\x02\x08\x01", 10},     // bytes that are a number
        {"\x0a\x09\x0a\x07\x12\x05\x12\x03\x0a\x01\x00", 11}, // packed floats of one byte
        {"\x0a\x09\x0a\x07\x12\x05\x1a\x03\x0a\x01\x80", 11}, // packed numbers that do not end
        {"\x0a\x08\x0a\x06\x12\x04\x12\x02\x08\x01", 10},     // a float that is a whole number
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        ck_assert_msg(!read_all((const uint8_t *)cases[k].bytes, cases[k].count), "case %zu", k);
    }
    ck_assert(read_all((const uint8_t *)"", 0));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("example");
    TCase *formats = tcase_create("formats");
    tcase_add_test(formats, sums_are_the_published_ones);
    tcase_add_test(formats, an_example_is_what_was_written_however_it_is_packed);
    tcase_add_test(formats, an_example_cut_or_changed_anywhere_is_read_or_refused);
    tcase_add_test(formats, what_is_no_example_is_refused);
    suite_add_tcase(suite, formats);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
