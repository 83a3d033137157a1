// SPDX-License-Identifier: Apache-2.0
// Promises of base/hash.h. SHA-256's answers are the examples of FIPS 180-4 and its validation suite.
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/philox.h"

static const char *sha256_of(const void *data, size_t bytes, char text[65])
{
    sha256 s;
    sha256_init(&s);
    sha256_add(&s, data, bytes);
    sha256_text(&s, text);
    return text;
}

START_TEST(known_answers)
{
    static const char two_blocks[] = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
    char text[65];
    ck_assert_str_eq(sha256_of("", 0, text),
                     "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    ck_assert_str_eq(sha256_of("abc", 3, text),
                     "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    ck_assert_str_eq(sha256_of(two_blocks, sizeof two_blocks - 1, text),
                     "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
}
END_TEST

START_TEST(million_letters_in_uneven_pieces)
{
    char piece[997], text[65];
    memset(piece, 'a', sizeof piece);
    sha256 s;
    sha256_init(&s);
    for (size_t left = 1000000; left > 0;) {
        size_t part = left % sizeof piece + 1;
        part = part > sizeof piece ? sizeof piece : part;
        part = part > left ? left : part;
        sha256_add(&s, piece, part);
        left -= part;
    }
    sha256_text(&s, text);
    ck_assert_str_eq(text, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}
END_TEST

START_TEST(pieces_do_not_matter)
{
    unsigned char data[200];
    for (size_t i = 0; i < sizeof data; i++) {
        data[i] = (unsigned char)(i * 7);
    }
    for (size_t length = 0; length <= sizeof data; length++) {
        char whole[65], pieces[65];
        sha256_of(data, length, whole);
        sha256 s;
        sha256_init(&s);
        size_t cut = length * 2 / 3;
        sha256_add(&s, data, cut);
        sha256_add(&s, data + cut, length - cut);
        sha256_text(&s, pieces);
        ck_assert_str_eq(whole, pieces);
    }
}
END_TEST

// Every input bit reaches every output bit about half of the time.
START_TEST(one_bit_changes_half_of_the_hash)
{
    unsigned char data[24] = "one step boundary's heap";
    uint64_t before = hash64(data, sizeof data, 3);
    unsigned flips = 0;
    for (size_t bit = 0; bit < 8 * sizeof data; bit++) {
        data[bit / 8] ^= (unsigned char)(1u << bit % 8);
        uint64_t changed = hash64(data, sizeof data, 3) ^ before;
        data[bit / 8] ^= (unsigned char)(1u << bit % 8);
        unsigned count = (unsigned)__builtin_popcountll(changed);
        ck_assert_uint_gt(count, 8);
        flips += count;
    }
    ck_assert_uint_gt(flips, 192 * 29);
    ck_assert_uint_lt(flips, 192 * 35);
}
END_TEST

START_TEST(length_order_and_seed_matter)
{
    static const unsigned char zeros[64] = {0};
    for (size_t length = 1; length <= sizeof zeros; length++) {
        ck_assert_uint_ne(hash64(zeros, length, 0), hash64(zeros, length - 1, 0));
    }
    ck_assert_uint_ne(hash64("ab", 2, 0), hash64("ba", 2, 0));
    ck_assert_uint_ne(hash64("aaaaaaaabbbbbbbb", 16, 0), hash64("bbbbbbbbaaaaaaaa", 16, 0));
    ck_assert_uint_ne(hash64("ab", 2, 0), hash64("ab", 2, 1));
    ck_assert_uint_ne(hash64_mix(hash64_mix(0, 1), 2), hash64_mix(hash64_mix(0, 2), 1));
}
END_TEST

static int compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

START_TEST(small_integers_do_not_collide)
{
    enum { SIDE = 256 };
    static uint64_t hashes[2][SIDE * SIDE];
    for (uint64_t i = 0; i < SIDE * SIDE; i++) {
        uint64_t pair[2] = {i / SIDE * 256, i % SIDE * 256};
        hashes[0][i] = hash64(pair, sizeof pair, 0);
        hashes[1][i] = hash64_mix(hash64_mix(1, pair[0]), pair[1]);
    }
    for (unsigned kind = 0; kind < 2; kind++) {
        qsort(hashes[kind], SIDE * SIDE, sizeof hashes[kind][0], compare);
        for (size_t i = 1; i < SIDE * SIDE; i++) {
            ck_assert_uint_ne(hashes[kind][i - 1], hashes[kind][i]);
        }
    }
}
END_TEST

START_TEST(unaligned_data_hash_the_same)
{
    unsigned char data[80];
    uint32_t random[4];
    philox(philox_key_of(1, "hash"), 0, 0, random);
    for (size_t shift = 0; shift < 8; shift++) {
        for (size_t i = 0; i < 64; i++) {
            data[shift + i] = (unsigned char)(random[i % 4] >> i % 24);
        }
        ck_assert_uint_eq(hash64(data + shift, 64, 9), hash64(data + shift, 64, 9));
        static uint64_t first;
        first = shift == 0 ? hash64(data, 61, 9) : first;
        ck_assert_uint_eq(hash64(data + shift, 61, 9), first);
    }
}
END_TEST

// Every bit of every byte counts, in both halves, and so does the length.
START_TEST(a_key_tells_bytes_apart)
{
    enum { MOST = 75 };
    unsigned char bytes[MOST];
    for (size_t k = 0; k < MOST; k++) {
        bytes[k] = (unsigned char)(k * 37);
    }
    for (size_t length = 1; length <= MOST; length++) {
        uint64_t key[2] = {1, 2}, shorter[2] = {1, 2}, seeded[2] = {2, 2};
        hash128(bytes, length, key);
        hash128(bytes, length - 1, shorter);
        hash128(bytes, length, seeded);
        ck_assert(key[0] != shorter[0] && key[1] != shorter[1] && key[0] != seeded[0]);
        for (size_t bit = 0; bit < 8 * length; bit++) {
            uint64_t other[2] = {1, 2};
            bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
            hash128(bytes, length, other);
            bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
            ck_assert(key[0] != other[0] && key[1] != other[1]);
        }
    }
}
END_TEST

// Two words change places: what a sum of hashes would not see.
START_TEST(a_key_knows_the_order)
{
    uint64_t words[6] = {3, 1, 4, 1, 5, 9}, key[2] = {0, 0};
    hash128(words, sizeof words, key);
    for (int i = 0; i < 6; i++) {
        for (int j = i + 1; j < 6; j++) {
            uint64_t swapped[6], other[2] = {0, 0};
            memcpy(swapped, words, sizeof words);
            swapped[i] = words[j];
            swapped[j] = words[i];
            hash128(swapped, sizeof swapped, other);
            ck_assert((key[0] == other[0]) == (words[i] == words[j]));
            ck_assert((key[1] == other[1]) == (words[i] == words[j]));
        }
    }
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("hash");
    tcase_add_test(tests, known_answers);
    tcase_add_test(tests, a_key_tells_bytes_apart);
    tcase_add_test(tests, a_key_knows_the_order);
    tcase_add_test(tests, million_letters_in_uneven_pieces);
    tcase_add_test(tests, pieces_do_not_matter);
    tcase_add_test(tests, one_bit_changes_half_of_the_hash);
    tcase_add_test(tests, length_order_and_seed_matter);
    tcase_add_test(tests, small_integers_do_not_collide);
    tcase_add_test(tests, unaligned_data_hash_the_same);
    Suite *suite = suite_create("hash");
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
