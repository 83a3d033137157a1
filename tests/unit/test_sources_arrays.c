// SPDX-License-Identifier: Apache-2.0
// Arrays of NumPy: every type in both byte orders gives the values that were written, from plain files, from stored and
// from packed members; what the model does not take is said in one sentence.
#include <endian.h>
#include <fcntl.h>
#include <math.h>
#include <sys/stat.h>

#include "base/half.h"
#include "base/philox.h"
#include "data/arrays.h"
#include "data/npy.h"
#include "data/source_checks.h"
#include "data/split.h"
#include "data/zip.h"

static data_form image_form(uint32_t height, uint32_t width, uint32_t channels, uint32_t classes)
{
    return (data_form){.count = 2,
                       .slot = {{.type = DATA_FLOAT, .rank = 3, .dim = {height, width, channels}},
                                {.type = DATA_IDS, .is_label = true, .classes = classes}}};
}

// ---- arrays as files ------------------------------------------------------------------------------------------

enum { ARRAY_MAX = 1 << 16 };

typedef struct array_file {
    uint8_t bytes[ARRAY_MAX];
    size_t size, header;
} array_file;

// As numpy.save writes it: the header padded with blanks so that values begin at a multiple of 64.
static void array_begin(array_file *a, uint32_t version, const char *descr, const char *shape)
{
    char text[256];
    const size_t prefix = version == 1 ? 10 : 12;
    const int length =
        snprintf(text, sizeof text, "{'descr': '%s', 'fortran_order': False, 'shape': %s, }", descr, shape);
    const size_t padded = (prefix + (size_t)length + 1 + 63) / 64 * 64;
    memset(a->bytes, ' ', padded);
    memcpy(a->bytes, "\x93NUMPY", 6);
    a->bytes[6] = (uint8_t)version;
    a->bytes[7] = 0;
    const uint32_t header = (uint32_t)(padded - prefix);
    for (size_t k = 8; k < prefix; k++) {
        a->bytes[k] = (uint8_t)(header >> 8 * (k - 8));
    }
    memcpy(a->bytes + prefix, text, (size_t)length);
    a->bytes[padded - 1] = '\n';
    a->size = a->header = padded;
}

static void array_put(array_file *a, const void *bytes, size_t count)
{
    ck_assert_uint_le(a->size + count, ARRAY_MAX);
    memcpy(a->bytes + a->size, bytes, count);
    a->size += count;
}

// `value` as that type in that byte order, and the float that it is.
static float put_value(array_file *a, npy_type type, bool big_endian, double value)
{
    static const uint32_t widths[] = {
#define X(name, descr, bytes, whole) bytes,
        NPY_TYPE_MAP(X)
#undef X
    };
    const uint32_t width = widths[type];
    uint64_t bits = (uint64_t)(int64_t)value;
    float f = (float)value;
    if (type == NPY_F16) {
        bits = f16_of_float(f);
        f = float_of_f16((uint16_t)bits);
    } else if (type == NPY_F32) {
        bits = bits_of_float(f);
    } else if (type == NPY_F64) {
        memcpy(&bits, &value, sizeof bits);
    }
    for (uint32_t k = 0; k < width; k++) {
        const uint8_t byte = (uint8_t)(bits >> 8 * (big_endian ? width - 1 - k : k));
        array_put(a, &byte, 1);
    }
    return f;
}

static void write_array(const data_folder *f, const char *leaf, const array_file *a)
{
    data_replace(f, leaf, a->bytes, a->size);
}

// An array of whole numbers value(k) of one-byte type.
static array_file small_array(const char *descr, const char *shape, size_t count, uint32_t step,
                              uint32_t below)
{
    static array_file a;
    array_begin(&a, 1, descr, shape);
    for (size_t k = 0; k < count; k++) {
        const uint8_t byte = (uint8_t)(k * step % below);
        array_put(&a, &byte, 1);
    }
    return a;
}

static void write_small(const data_folder *f, const char *leaf, const char *descr, const char *shape,
                        size_t count, uint32_t step, uint32_t below)
{
    const array_file a = small_array(descr, shape, count, step, below);
    write_array(f, leaf, &a);
}

// ---- headers --------------------------------------------------------------------------------------------------

static hr_status parse(const void *bytes, size_t count, npy *out, hr_err *err)
{
    uint32_t size_bytes;
    ck_assert_uint_ge(count, NPY_PREFIX_BYTES);
    HR_TRY(npy_header_size("a.npy", bytes, &size_bytes, err));
    ck_assert_uint_le(size_bytes, count);
    return npy_parse("a.npy", bytes, size_bytes, out, err);
}

START_TEST(headers_of_all_versions_and_types_are_read)
{
    static const char *const descrs[] = {
#define X(name, descr, bytes, whole) descr,
        NPY_TYPE_MAP(X)
#undef X
    };
    static const char orders[] = "<>=|";
    for (uint32_t version = 1; version <= 3; version++) {
        for (npy_type type = 0; type < NPY_TYPE_COUNT; type++) {
            for (const char *order = orders; *order != '\0'; order++) {
                array_file a;
                npy n;
                char descr[8];
                (void)snprintf(descr, sizeof descr, "%c%s", *order, descrs[type]);
                array_begin(&a, version, descr, "(60000, 28, 28)");
                const hr_status status = parse(a.bytes, a.size, &n, NULL);
                if (*order == '|' && descrs[type][1] != '1') {
                    ck_assert_int_eq(status, HR_DATA);
                    continue;
                }
                ck_assert_int_eq(status, HR_OK);
                ck_assert_int_eq(n.type, type);
                ck_assert_uint_eq(n.header_bytes, a.header);
                ck_assert_uint_eq(n.rank, 3);
                ck_assert(n.dim[0] == 60000 && n.dim[1] == 28 && n.dim[2] == 28);
                ck_assert_int_eq(n.swapped, npy_value_bytes(&n) > 1 &&
                                                *order == (__BYTE_ORDER == __LITTLE_ENDIAN ? '>' : '<'));
            }
        }
    }
}
END_TEST

START_TEST(what_is_wrong_with_a_header_is_said)
{
    static const struct {
        const char *header, *sentence; // NULL: it is good
    } cases[] = {
        {"{'shape': (3,), 'fortran_order': False, 'descr': '<f4'}", NULL},
        {"{\"descr\":\"<f4\",\"fortran_order\":False,\"shape\":()}\n", NULL},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (3L, 4L)}", NULL},
        {"{'descr': '<f4', 'fortran_order': True, 'shape': (3,)}",
         ", offset 44: needed rows one behind the other, had fortran_order: columns"},
        {"{'descr': '|O', 'fortran_order': False, 'shape': (3,)}",
         ", offset 20: needed numbers, had objects of Python (dtype=object), which are not read"},
        {"{'descr': '<U10', 'fortran_order': False, 'shape': (3,)}",
         ", offset 20: needed a type of b1, u1, u2, u4, i1, i2, i4, i8, f2, f4 and f8, had \"'<U10', "
         "'fortran_order'\""},
        {"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (3,)}",
         ", offset 20: needed a type of b1, u1, u2, u4, i1, i2, i4, i8, f2, f4 and f8, had \"[('a', '<f4')], "
         "'fortra\""},
        {"{'descr': '<f4', 'fortran_order': False}",
         ", offset 50: needed 'descr', 'fortran_order' and 'shape' and nothing behind them, had the end of "
         "the header"},
        {"{'descr': '<f4', 'descr': '<f4'}",
         ", offset 27: needed 'descr', 'fortran_order' and 'shape' once each, had \"'descr': '<f4'}\""},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (3,)} x",
         ", offset 66: needed 'descr', 'fortran_order' and 'shape' and nothing behind them, had \"x\""},
        {"{'descr': '<f4', 'fortran_order': 0, 'shape': (3,)}",
         ", offset 44: needed True or False, had \"0, 'shape': (3,)}\""},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (-3,)}",
         ", offset 61: needed a dimension below 2^64, had \"-3,)}\""},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (18446744073709551616,)}",
         ", offset 61: needed a dimension below 2^64, had \"18446744073709551616,)}\""},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (3 4)}",
         ", offset 63: needed a comma or a closing parenthesis, had \"4)}\""},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1)}",
         ", offset 77: needed at most 8 dimensions, had \"1)}\""},
        {"{'descr': '<f8', 'fortran_order': False, 'shape': (4294967296, 4294967296)}",
         ": needed an array that a file can hold, had [4294967296, 4294967296] of f8"},
        {"", ", offset 12: needed a dictionary, had the end of the header"},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        uint8_t bytes[512] = "\x93NUMPY\1\0";
        const size_t length = strlen(cases[k].header);
        npy n;
        hr_err err = {0};
        memset(bytes + 10, ' ', 2);
        memcpy(bytes + 10, cases[k].header, length);
        bytes[8] = (uint8_t)(length > 2 ? length : 2);
        const hr_status status = parse(bytes, sizeof bytes, &n, &err);
        ck_assert_msg((status == HR_OK) == (cases[k].sentence == NULL), "%s: %s", cases[k].header,
                      err.sentence);
        if (status != HR_OK) {
            assert_says(&err, "a.npy", cases[k].sentence);
        }
    }
}
END_TEST

START_TEST(a_prefix_that_is_none_is_said)
{
    static const struct {
        uint8_t bytes[NPY_PREFIX_BYTES];
        const char *sentence;
    } cases[] = {
        {"PK\3\4", ", offset 0: needed an array of NumPy (\\x93NUMPY), had 0x504B0304"},
        {"\x93NUMPY\4\0\1\0\0", ", offset 6: needed version 1, 2 or 3, had 4"},
        {"\x93NUMPY\1\0\1\0\0", ", offset 8: needed a header of 12 to 4096 bytes, had 11"},
        {"\x93NUMPY\1\0\xff\xff\0", ", offset 8: needed a header of 12 to 4096 bytes, had 65545"},
        {"\x93NUMPY\2\0\xff\xff\xff\xff", ", offset 8: needed a header of 12 to 4096 bytes, had 4294967307"},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        uint32_t size_bytes;
        hr_err err = {0};
        ck_assert_int_eq(npy_header_size("a.npy", cases[k].bytes, &size_bytes, &err), HR_DATA);
        assert_says(&err, "a.npy", cases[k].sentence);
    }
}
END_TEST

// ---- values ---------------------------------------------------------------------------------------------------

enum { ROWS = 12, WIDTH = 7 };

// A number that every type holds as it is, or rounds as put_value does.
static double value_for(npy_type type, uint32_t k)
{
    static const double whole[] = {0, 1, 2, 100, 127, 3, 77},
                        reals[] = {0, -1.5, 65504, 1e-7, 3.14159265358979, -0.0, 1e6};
    static const double ends[NPY_TYPE_COUNT] = {
        [NPY_BOOL] = 1,  [NPY_U8] = 255,     [NPY_U16] = 65535,        [NPY_U32] = 4294967295.,
        [NPY_I8] = -128, [NPY_I16] = -32768, [NPY_I32] = -2147483648., [NPY_I64] = -9e15};
    if (type == NPY_BOOL) {
        return k % 2;
    }
    if (type >= NPY_F16) {
        return reals[k % WIDTH] * (type == NPY_F64 && k > 50 ? 1e3 : 1);
    }
    return k % 5 == 4 ? ends[type] : whole[k % WIDTH];
}

START_TEST(every_type_in_both_orders_gives_its_values)
{
    static const char *const descrs[] = {
#define X(name, descr, bytes, whole) descr,
        NPY_TYPE_MAP(X)
#undef X
    };
    const data_form form = {
        .count = 2,
        .slot = {{.type = DATA_FLOAT, .rank = 2, .dim = {WIDTH, 1}}, {.type = DATA_FLOAT, .is_label = true}}};
    for (uint32_t k = 0; k < 2 * NPY_TYPE_COUNT; k++) {
        const npy_type type = (npy_type)(k / 2);
        const bool big = k % 2 == 1;
        static array_file x, y;
        float wanted[ROWS][WIDTH], label[ROWS];
        char descr[8];
        (void)snprintf(descr, sizeof descr, "%c%s", big ? '>' : '<', descrs[type]);
        array_begin(&x, 1 + k % 3, descr, "(12, 7)");
        array_begin(&y, 1, descr, "(12, 1)");
        for (uint32_t row = 0; row < ROWS; row++) {
            for (uint32_t i = 0; i < WIDTH; i++) {
                const float value = put_value(&x, type, big, value_for(type, row * WIDTH + i));
                wanted[row][i] = type == NPY_U8 ? value / 255.0f : value; // bytes of an input are an image's
            }
            label[row] = put_value(&y, type, big, value_for(type, row));
        }
        data_folder f = data_folder_make();
        write_array(&f, "x_train.npy", &x);
        write_array(&f, "y_train.npy", &y);
        data_source *s = source_at("auto", f.path, &form);
        ck_assert_uint_eq(s->held_bytes, 0);
        for (data_set set = 0; set < DATA_SET_COUNT; set++) {
            for (uint32_t i = 0; i < data_source_samples(s, set); i++) {
                const uint64_t row = split_number(ROWS, set, i);
                data_room room = sample_of(s, set, i);
                ck_assert_mem_eq(room.slot[0], wanted[row], sizeof wanted[row]);
                ck_assert_mem_eq(room.slot[1], &label[row], sizeof label[row]);
                data_room_give_back(&room);
            }
        }
        data_source_close(s);
        data_folder_remove(&f);
    }
}
END_TEST

START_TEST(labels_of_every_whole_type_are_classes)
{
    static const char *const descrs[] = {"|b1", "|u1", "<u2", "<u4", "|i1", "<i2", ">i4", "<i8", ">i8"};
    static const npy_type types[] = {NPY_BOOL, NPY_U8,  NPY_U16, NPY_U32, NPY_I8,
                                     NPY_I16,  NPY_I32, NPY_I64, NPY_I64};
    const data_form form = image_form(3, 4, 1, 2);
    for (size_t k = 0; k < sizeof types / sizeof *types; k++) {
        data_folder f = data_folder_make();
        static array_file y;
        write_small(&f, "x.npy", "|u1", "(20, 3, 4)", 240, 7, 251);
        array_begin(&y, 1, descrs[k], k % 2 == 0 ? "(20,)" : "(20, 1)");
        for (uint32_t i = 0; i < 20; i++) {
            (void)put_value(&y, types[k], descrs[k][0] == '>', i % 3 == 1);
        }
        write_array(&f, "y.npy", &y);
        data_source *s = source_at("npy", f.path, &form);
        ck_assert(s->ops->decode != NULL);
        ck_assert(s->info.height == 3 && s->info.width == 4 && s->info.channels == 1);
        for (data_set set = 0; set < DATA_SET_COUNT; set++) {
            for (uint32_t i = 0; i < data_source_samples(s, set); i++) {
                const uint64_t number = split_number(20, set, i);
                data_room room = sample_of(s, set, i);
                ck_assert_int_eq(*(int32_t *)room.slot[1], number % 3 == 1);
                for (uint32_t p = 0; p < 12; p++) {
                    ck_assert(((float *)room.slot[0])[p] == (float)((number * 12 + p) * 7 % 251) / 255.0f);
                }
                data_room_give_back(&room);
            }
        }
        data_source_close(s);
        data_folder_remove(&f);
    }
}
END_TEST

START_TEST(other_models_take_arrays_of_their_slots)
{
    const data_form form = {
        .count = 3,
        .slot = {{.type = DATA_IDS, .classes = 50, .rank = 1, .dim = {5}},
                 {.type = DATA_FLOAT, .rank = 3, .dim = {2, 2, 3}},
                 {.type = DATA_MASK, .classes = 4, .is_label = true, .rank = 2, .dim = {2, 2}}}};
    data_folder f = data_folder_make();
    static array_file a;
    array_begin(&a, 1, ">i2", "(2, 5)");
    for (uint32_t k = 0; k < 10; k++) {
        (void)put_value(&a, NPY_I16, true, k * 5);
    }
    write_array(&f, "x_train.npy", &a);
    write_small(&f, "x_train_2.npy", "|u1", "(2, 2, 2, 3)", 24, 10, 255);
    write_small(&f, "y_train.npy", "|i1", "(2, 2, 2, 1)", 8, 1, 4);
    write_small(&f, "x_test.npy", "|u1", "(1, 5)", 5, 1, 50);
    assert_refused("npy", f.path, &form, f.path, ": needed x_test_2.npy beside x_test.npy, had none");
    char path[FILE_NAME_MAX];
    (void)unlink(data_folder_file(&f, "x_test.npy", path));
    data_source *s = source_at("npy", f.path, &form);
    for (data_set set = 0; set < DATA_SET_COUNT; set++) {
        const uint32_t number = (uint32_t)split_number(2, set, 0);
        data_room room = sample_of(s, set, 0);
        for (uint32_t k = 0; k < 5; k++) {
            ck_assert_int_eq(((int32_t *)room.slot[0])[k], (int)(number * 5 + k) * 5);
        }
        for (uint32_t k = 0; k < 12; k++) {
            ck_assert(((float *)room.slot[1])[k] == (float)((number * 12 + k) * 10 % 255) / 255.0f);
        }
        for (uint32_t k = 0; k < 4; k++) {
            ck_assert_uint_eq(((uint8_t *)room.slot[2])[k], (number * 4 + k) % 4);
        }
        data_room_give_back(&room);
    }
    data_source_close(s);
    data_folder_remove(&f);
}
END_TEST

// ---- .npz -----------------------------------------------------------------------------------------------------

typedef struct member {
    const char *name;
    const array_file *array;
} member;

typedef struct zip_writer {
    uint8_t bytes[1 << 18], directory[1 << 12];
    size_t size, directory_size, members;
    bool wide; // 64-bit sizes in extra fields, as numpy.savez writes them in local heads
} zip_writer;

static void put_le(uint8_t *to, uint64_t value, uint32_t bytes)
{
    for (uint32_t k = 0; k < bytes; k++) {
        to[k] = (uint8_t)(value >> 8 * k);
    }
}

static void zip_store(zip_writer *z, const member *m)
{
    const size_t name = strlen(m->name), offset = z->size;
    const uint32_t extra = z->wide ? 20 : 0;
    uint8_t *local = z->bytes + z->size;
    put_le(local, 0x04034b50, 4);
    put_le(local + 18, z->wide ? UINT32_MAX : m->array->size, 4);
    put_le(local + 22, z->wide ? UINT32_MAX : m->array->size, 4);
    put_le(local + 26, name, 2);
    put_le(local + 28, extra, 2);
    memcpy(local + 30, m->name, name);
    memcpy(local + 30 + name + extra, m->array->bytes, m->array->size);
    z->size += 30 + name + extra + m->array->size;
    uint8_t *entry = z->directory + z->directory_size;
    put_le(entry, 0x02014b50, 4);
    put_le(entry + 20, z->wide ? UINT32_MAX : m->array->size, 4);
    put_le(entry + 24, z->wide ? UINT32_MAX : m->array->size, 4);
    put_le(entry + 28, name, 2);
    put_le(entry + 30, z->wide ? 32 : 0, 2);
    put_le(entry + 42, z->wide ? UINT32_MAX : offset, 4);
    memcpy(entry + 46, m->name, name);
    z->directory_size += 46 + name;
    if (z->wide) { // a field that is not it, then the three numbers
        uint8_t *field = entry + 46 + name;
        put_le(field, 0x5455, 2);
        put_le(field + 4, 1, 2);
        put_le(field + 6, 24, 2);
        put_le(field + 8, m->array->size, 8);
        put_le(field + 16, m->array->size, 8);
        put_le(field + 24, offset, 8);
        z->directory_size += 32;
    }
    z->members++;
}

static void zip_end(zip_writer *z, const data_folder *f, const char *leaf)
{
    const size_t directory = z->size;
    memcpy(z->bytes + z->size, z->directory, z->directory_size);
    z->size += z->directory_size;
    if (z->wide) {
        uint8_t *end64 = z->bytes + z->size;
        put_le(end64, 0x06064b50, 4);
        put_le(end64 + 40, z->directory_size, 8);
        put_le(end64 + 48, directory, 8);
        put_le(end64 + 56, 0x07064b50, 4);
        put_le(end64 + 64, z->size, 8);
        z->size += 56 + 20;
    }
    uint8_t *end = z->bytes + z->size;
    put_le(end, 0x06054b50, 4);
    put_le(end + 12, z->wide ? UINT32_MAX : z->directory_size, 4);
    put_le(end + 16, z->wide ? UINT32_MAX : directory, 4);
    z->size += 22;
    data_replace(f, leaf, z->bytes, z->size);
}

typedef enum npz_form { NPZ_STORED, NPZ_WIDE, NPZ_PACKED, NPZ_FORMS } npz_form;

static void write_npz(const data_folder *f, const char *leaf, npz_form form, const member *members,
                      size_t count)
{
    char path[FILE_NAME_MAX];
    if (form == NPZ_PACKED) {
        struct archive *a = pack_open(data_folder_file(f, leaf, path), PACK_ZIP);
        for (size_t k = 0; k < count; k++) {
            pack_add(a, members[k].name, members[k].array->bytes, members[k].array->size);
        }
        pack_close(a);
        return;
    }
    static zip_writer z;
    memset(&z, 0, sizeof z);
    z.wide = form == NPZ_WIDE;
    for (size_t k = 0; k < count; k++) {
        zip_store(&z, &members[k]);
    }
    zip_end(&z, f, leaf);
}

enum { SMALL_TRAIN = 15, SMALL_EVAL = 4, SMALL_IMAGE = 5 * 6 * 3 };

// 15 images of 5×6×3 and 4 held out; returns the bytes of all members.
static uint64_t write_small_npz(const data_folder *f, const char *leaf, npz_form form)
{
    static array_file x, y, x_test, y_test;
    x = small_array("|u1", "(15, 5, 6, 3)", SMALL_TRAIN * SMALL_IMAGE, 3, 253);
    y = small_array("|u1", "(15,)", SMALL_TRAIN, 1, 10);
    x_test = small_array("|u1", "(4, 5, 6, 3)", SMALL_EVAL * SMALL_IMAGE, 5, 241);
    y_test = small_array("|u1", "(4,)", SMALL_EVAL, 3, 10);
    const member members[] = {
        {"y_test.npy", &y_test}, {"x_train.npy", &x}, {"y_train.npy", &y}, {"x_test.npy", &x_test}};
    write_npz(f, leaf, form, members, 4);
    return x.size + y.size + x_test.size + y_test.size;
}

static void assert_small_set(const data_source *s)
{
    ck_assert_uint_eq(s->info.train_samples, SMALL_TRAIN);
    ck_assert_uint_eq(s->info.eval_samples, SMALL_EVAL);
    for (data_set set = 0; set < DATA_SET_COUNT; set++) {
        const uint32_t step = set == DATA_TRAIN ? 3 : 5, below = set == DATA_TRAIN ? 253 : 241;
        for (uint32_t i = 0; i < data_source_samples(s, set); i++) {
            data_room room = sample_of(s, set, i);
            for (uint32_t p = 0; p < SMALL_IMAGE; p++) {
                ck_assert(((float *)room.slot[0])[p] ==
                          (float)((i * SMALL_IMAGE + p) * step % below) / 255.0f);
            }
            ck_assert_int_eq(*(int32_t *)room.slot[1], (int)(i * (set == DATA_TRAIN ? 1 : 3)) % 10);
            data_room_give_back(&room);
        }
    }
}

START_TEST(an_npz_is_read_in_place_or_held)
{
    const data_form form = image_form(5, 6, 3, 10);
    data_folder f = data_folder_make();
    char path[FILE_NAME_MAX];
    const uint64_t all = write_small_npz(&f, "small.npz", (npz_form)_i);
    data_source *s = source_at("auto", data_folder_file(&f, "small.npz", path), &form);
    ck_assert_uint_eq(s->held_bytes, _i == NPZ_PACKED ? all : 0);
    ck_assert_str_eq(s->info.label, "arrays (small.npz)");
    assert_small_set(s);
    data_source_close(s);
    data_folder_remove(&f);
}
END_TEST

// Another file is moved over the archive between one array and the next: both come of the first, or none does.
START_TEST(arrays_come_of_one_file)
{
    data_folder f = data_folder_make();
    char path[FILE_NAME_MAX], other[FILE_NAME_MAX];
    uint64_t held_bytes = 0;
    array_store store;
    array x, y;
    hr_err err = {0};
    (void)write_small_npz(&f, "a.npz", (npz_form)_i);
    static array_file long_y;
    long_y = small_array("|u1", "(16,)", 16, 7, 10);
    const member members[] = {{"y_train.npy", &long_y}};
    write_npz(&f, "b.npz", (npz_form)_i, members, 1);
    ck_assert_int_eq(arrays_open(data_folder_file(&f, "a.npz", path), &store, NULL), HR_OK);
    ck_assert_int_eq(arrays_take(&store, "x_train", &held_bytes, &x, NULL), HR_OK);
    ck_assert_int_eq(rename(data_folder_file(&f, "b.npz", other), path), 0);
    const hr_status status = arrays_take(&store, "y_train", &held_bytes, &y, &err);
    if (_i == NPZ_PACKED) {
        ck_assert_int_eq(status, HR_DATA);
        assert_says(&err, path, ": needed the file that was opened first, had another under its name");
    } else {
        ck_assert_int_eq(status, HR_OK);
        ck_assert_uint_eq(y.npy.dim[0], SMALL_TRAIN);
        ck_assert_int_eq(blob_check_same(&y.file, NULL), HR_OK);
    }
    blob_close(&x.file);
    blob_close(&y.file);
    arrays_close(&store);
    data_folder_remove(&f);
}
END_TEST

START_TEST(a_flat_model_takes_images_of_as_many_values)
{
    data_folder f = data_folder_make();
    char path[FILE_NAME_MAX];
    (void)write_small_npz(&f, "small.npz", NPZ_STORED);
    data_form form = {.count = 2,
                      .slot = {{.type = DATA_FLOAT, .rank = 1, .dim = {SMALL_IMAGE}},
                               {.type = DATA_IDS, .is_label = true, .classes = 10}}};
    data_source *s = source_at("auto", data_folder_file(&f, "small.npz", path), &form);
    assert_small_set(s);
    data_source_close(s);
    form.slot[0].dim[0]++;
    hr_err err = source_refused("auto", path, &form);
    assert_says(&err, "arrays (small.npz)", ": needed images of 1x1x91 for this model, had 5x6x3");
    data_folder_remove(&f);
}
END_TEST

START_TEST(an_npz_truncated_anywhere_is_an_error)
{
    const data_form form = image_form(5, 6, 3, 10);
    data_folder f = data_folder_make();
    char path[FILE_NAME_MAX];
    size_t count;
    (void)write_small_npz(&f, "a.npz", (npz_form)_i);
    uint8_t *bytes = data_read(data_folder_file(&f, "a.npz", path), &count);
    for (size_t cut = 0; cut<count; cut += count - cut> 400 ? 23 : 1) {
        data_replace(&f, "a.npz", bytes, cut);
        const hr_err err = source_refused("npy", path, &form);
        ck_assert_msg(strncmp(err.sentence, path, strlen(path)) == 0, "%s", err.sentence);
    }
    free(bytes);
    data_folder_remove(&f);
}
END_TEST

START_TEST(an_npz_with_a_changed_byte_never_crashes)
{
    const data_form form = image_form(5, 6, 3, 10);
    data_folder f = data_folder_make();
    char path[FILE_NAME_MAX];
    size_t count;
    (void)write_small_npz(&f, "a.npz", (npz_form)_i);
    uint8_t *bytes = data_read(data_folder_file(&f, "a.npz", path), &count);
    hr_knobs knobs = data_knobs("npy", path);
    for (size_t at = 0; at<count; at += count - at> 600 ? 37 : 1) {
        static const uint8_t changes[] = {1, 0x80, 0xff};
        data_source *s = NULL;
        bytes[at] ^= changes[at % 3];
        data_replace(&f, "a.npz", bytes, count);
        const hr_status status = data_source_open(&knobs, &form, &s, NULL);
        ck_assert(status == HR_OK || status == HR_DATA);
        data_source_close(s);
        bytes[at] ^= changes[at % 3];
    }
    ck_assert_uint_eq(other_blocks_bytes(NULL), 0);
    free(bytes);
    data_folder_remove(&f);
}
END_TEST

START_TEST(what_is_wrong_with_a_zip_is_said)
{
    const data_form form = image_form(5, 6, 3, 10);
    data_folder f = data_folder_make();
    char path[FILE_NAME_MAX];
    static array_file x;
    x = small_array("|u1", "(15, 5, 6, 3)", SMALL_TRAIN * SMALL_IMAGE, 3, 253);
    data_folder_file(&f, "a.npz", path);
    const member twice[] = {{"x_train.npy", &x}, {"b/x_train.npy", &x}};
    write_npz(&f, "a.npz", NPZ_STORED, twice, 2);
    assert_refused("npy", path, &form, path, ": needed x_train.npy once, had it twice");
    const member none[] = {{"arr_0.npy", &x}};
    write_npz(&f, "a.npz", NPZ_STORED, none, 1);
    assert_refused("npy", path, &form, path, ": needed x_train.npy and y_train.npy, had neither");
    const member alone[] = {{"x_train.npy", &x}};
    write_npz(&f, "a.npz", NPZ_STORED, alone, 1);
    assert_refused("npy", path, &form, path, ": needed y_train.npy beside x_train.npy, had none");
    size_t count;
    uint8_t *bytes = data_read(path, &count);
    uint8_t *entry = memmem(bytes, count, "PK\1\2", 4);
    entry[8] = 1;
    data_replace(&f, "a.npz", bytes, count);
    assert_refused("npy", path, &form, path, ": needed a plain member, had x_train.npy encrypted");
    entry[8] = 0;
    entry[42] = 1;
    data_replace(&f, "a.npz", bytes, count);
    assert_refused("npy", path, &form, path,
                   ", offset 1: needed the head of a member of a zip file, had something else");
    free(bytes);
    data_replace(&f, "a.npz", "not a zip", 9);
    assert_refused("npy", path, &form, path,
                   ", offset 9: needed the end record of a zip file, had something else");
    (void)unlink(path);
    assert_refused("npy", path, &form, path, ": needed a zip file, had no such file");
    data_folder_remove(&f);
}
END_TEST

// ---- what the model takes -------------------------------------------------------------------------------------

START_TEST(arrays_that_the_model_does_not_take_are_refused)
{
    static const struct {
        const char *x_descr, *x_shape, *y_descr, *y_shape, *leaf, *sentence;
        size_t x_count, y_count;
    } cases[] = {
        {"|i1", "(4, 5, 6, 1)", "|u1", "(4,)", "x_train.npy",
         ": needed 5x6x3 floats a sample, had [4, 5, 6, 1] of i1", 120, 4},
        {"|u1", "(4, 5, 6, 3)", "|u1", "(4, 2)", "y_train.npy",
         ": needed 1 ids below 10 a sample, had [4, 2] of u1", 360, 8},
        {"|u1", "(4, 5, 6, 3)", "<f2", "(4,)", "y_train.npy",
         ": needed 1 ids below 10 a sample, of a whole type, had [4] of f2", 360, 8},
        {"|u1", "(4, 5, 6, 3)", "|u1", "(3,)", "y_train.npy", NULL, 360, 3},
        {"|u1", "()", "|u1", "(3,)", "x_train.npy",
         ": needed a first dimension of 1 to 4294967295 samples, had [] of u1", 1, 3},
        {"|u1", "(0, 5, 6, 3)", "|u1", "(0,)", "x_train.npy",
         ": needed a first dimension of 1 to 4294967295 samples, had [0, 5, 6, 3] of u1", 0, 0},
        {"|u1", "(1, 5, 6, 3)", "|u1", "(1,)", "x_train.npy",
         ": needed 2 samples, one of them to hold out, had 1", 90, 1},
        {"|u1", "(4, 5, 0, 3)", "|u1", "(4,)", "x_train.npy",
         ": needed images of 1 to 65536 pixels a side and below 2 GiB, had [4, 5, 0, 3] of u1", 0, 4},
        {"|u1", "(4, 5, 6, 3)", "|u1", "(4,)", "x_train.npy",
         ", offset 128: needed 360 bytes for [4, 5, 6, 3] of u1, had 359", 359, 4},
        {"|u1", "(4, 5, 6, 3)", "|u1", "(4,)", "y_train.npy",
         ", offset 128: needed 4 bytes for [4] of u1, had 5", 360, 5},
        {"|u1", "(20, 5, 6, 3)", "|u1", "(20,)", "y_train.npy",
         ", offset 138: needed a whole number from 0 to 9, had 10", 1800, 20},
        {"|i1", "(2, 5, 6, 3)", "|i1", "(2,)", NULL, NULL, 180, 2},
    };
    const data_form form = image_form(5, 6, 3, 10);
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        data_folder f = data_folder_make();
        char path[FILE_NAME_MAX], sentence[256];
        write_small(&f, "x_train.npy", cases[k].x_descr, cases[k].x_shape, cases[k].x_count, 1, 255);
        write_small(&f, "y_train.npy", cases[k].y_descr, cases[k].y_shape, cases[k].y_count, 1, 255);
        if (cases[k].leaf == NULL) { // float values of an image as they are
            data_source *s = source_at("npy", f.path, &form);
            data_room room = sample_of(s, split_number(2, DATA_TRAIN, 0) == 0 ? DATA_TRAIN : DATA_EVAL, 0);
            ck_assert(((float *)room.slot[0])[89] == 89.0f);
            data_room_give_back(&room);
            data_source_close(s);
        } else {
            (void)snprintf(sentence, sizeof sentence, ": needed 4 samples as in %s/x_train.npy, had 3",
                           f.path);
            assert_refused("npy", f.path, &form, data_folder_file(&f, cases[k].leaf, path),
                           cases[k].sentence != NULL ? cases[k].sentence : sentence);
        }
        data_folder_remove(&f);
    }
}
END_TEST

START_TEST(held_out_arrays_are_like_the_others)
{
    const data_form form = image_form(5, 6, 3, 10);
    data_folder f = data_folder_make();
    char path[FILE_NAME_MAX];
    write_small(&f, "x_train.npy", "|u1", "(4, 5, 6, 3)", 360, 1, 255);
    write_small(&f, "y_train.npy", "|u1", "(4,)", 4, 1, 255);
    write_small(&f, "x_test.npy", "|i1", "(2, 5, 6, 3)", 180, 1, 127);
    write_small(&f, "y_test.npy", "|u1", "(2,)", 2, 1, 255);
    assert_refused(
        "npy", f.path, &form, data_folder_file(&f, "x_test.npy", path),
        ": needed the type, byte order and shape of the training samples, [4, 5, 6, 3] of u1, had [2, 5, "
        "6, 3] of i1");
    write_small(&f, "x_val.npy", "|u1", "(3, 5, 6, 3)", 270, 1, 127); // for validation goes before testing
    write_small(&f, "y_val.npy", "|u1", "(3,)", 3, 4, 255);
    data_source *s = source_at("npy", f.path, &form);
    ck_assert_uint_eq(s->info.eval_samples, 3);
    data_room room = sample_of(s, DATA_EVAL, 2);
    ck_assert_int_eq(*(int32_t *)room.slot[1], 8);
    data_room_give_back(&room);
    data_source_close(s);
    static array_file y;
    array_begin(&y, 1, "<i4", "(4, 1)");
    array_put(&y, (const uint8_t[16]){0}, 16);
    write_array(&f, "y_train.npy", &y);
    array_begin(&y, 1, ">i4", "(3,)");
    array_put(&y, (const uint8_t[12]){0}, 12);
    write_array(&f, "y_val.npy", &y);
    write_small(&f, "x_val.npy", "|u1", "(3, 5, 6, 3)", 270, 1, 127);
    hr_err err = source_refused("npy", f.path, &form);
    assert_says(
        &err, data_folder_file(&f, "y_val.npy", path),
        ": needed the type, byte order and shape of the training samples, [4, 1] of i4, had [3] of i4");
    array_begin(&y, 1, "<i4", "(3,)");
    array_put(&y, (const uint8_t[12]){0}, 12);
    write_array(&f, "y_val.npy", &y);
    data_source_close(source_at("npy", f.path, &form));
    data_folder_remove(&f);
}
END_TEST

// Labels of four billion images: a million of them are looked at before the first step.
START_TEST(a_sparse_array_is_opened_at_once)
{
    const data_form form = image_form(5, 6, 3, 10);
    data_folder f = data_folder_make();
    char path[FILE_NAME_MAX];
    static array_file a;
    array_begin(&a, 1, "|u1", "(4000000000, 5, 6, 3)");
    write_array(&f, "x_train.npy", &a);
    const size_t header = a.size;
    array_begin(&a, 1, "<i8", "(4000000000,)");
    write_array(&f, "y_train.npy", &a);
    if (truncate(data_folder_file(&f, "x_train.npy", path), (off_t)header + INT64_C(4000000000) * 90) == 0 &&
        truncate(data_folder_file(&f, "y_train.npy", path), (off_t)a.size + INT64_C(4000000000) * 8) == 0) {
        data_source *s = source_at("npy", f.path, &form);
        ck_assert_uint_eq(s->info.eval_samples, 400000000);
        data_room room = sample_of(s, DATA_TRAIN, 3599999999);
        data_room_give_back(&room);
        data_source_close(s);
    } // else the file system has no such files
    data_folder_remove(&f);
}
END_TEST

START_TEST(an_array_truncated_anywhere_is_an_error)
{
    const data_form form = image_form(5, 6, 3, 10);
    data_folder f = data_folder_make();
    char path[FILE_NAME_MAX];
    size_t count;
    write_small(&f, "x_train.npy", "|u1", "(4, 5, 6, 3)", 360, 1, 255);
    write_small(&f, "y_train.npy", "|u1", "(4,)", 4, 1, 255);
    uint8_t *bytes = data_read(data_folder_file(&f, "x_train.npy", path), &count);
    for (size_t cut = 0; cut < count; cut++) {
        data_replace(&f, "x_train.npy", bytes, cut);
        const hr_err err = source_refused("npy", f.path, &form);
        ck_assert_msg(strncmp(err.sentence, path, strlen(path)) == 0, "%s", err.sentence);
    }
    free(bytes);
    data_folder_remove(&f);
}
END_TEST

START_TEST(an_array_cut_or_changed_while_in_use_is_an_error)
{
    const data_form form = image_form(5, 6, 3, 10);
    data_folder f = data_folder_make();
    char path[FILE_NAME_MAX];
    write_small(&f, "x_train.npy", "|u1", "(40, 5, 6, 3)", 3600, 1, 255);
    write_small(&f, "y_train.npy", "|u1", "(40,)", 40, 1, 10);
    data_source *s = source_at("npy", f.path, &form);
    const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_sec = 77}};
    data_folder_file(&f, "y_train.npy", path);
    ck_assert_int_eq(utimensat(AT_FDCWD, path, times, 0), 0); // written to, and as long as before
    hr_err err = sample_refused(s, DATA_TRAIN, 30);
    assert_says(&err, path, ": needed the file of 168 bytes that was opened, had one of 168 bytes");
    data_source_close(s);
    s = source_at("npy", f.path, &form);
    ck_assert_int_eq(truncate(data_folder_file(&f, "x_train.npy", path), 3600), 0);
    err = sample_refused(s, DATA_TRAIN, 0);
    assert_says(&err, path, ": needed the file of 3728 bytes that was opened, had one of 3600 bytes");
    data_source_close(s);
    data_folder_remove(&f);
}
END_TEST

// Two samples of two gigabytes each, for a model of small ones: nothing of them is taken or read.
START_TEST(images_of_another_size_are_refused_unread)
{
    const data_form form = image_form(5, 6, 3, 10);
    data_folder f = data_folder_make();
    char path[FILE_NAME_MAX];
    static array_file a;
    array_begin(&a, 1, "|u1", "(2, 65535, 32767)");
    write_array(&f, "x_train.npy", &a);
    const off_t size = (off_t)a.size + INT64_C(2) * 65535 * 32767;
    array_begin(&a, 1, "|u1", "(2,)");
    array_put(&a, (const uint8_t[2]){0}, 2);
    write_array(&f, "y_train.npy", &a);
    if (truncate(data_folder_file(&f, "x_train.npy", path), size) == 0) {
        most_block_bytes = 0;
        const hr_err err = source_refused("npy", f.path, &form);
        ck_assert_ptr_nonnull(
            strstr(err.sentence, ": needed images of 5x6x3 for this model, had 65535x32767x1"));
        ck_assert_uint_lt(most_block_bytes, 1 << 20);
    } // else the file system has no such files
    data_folder_remove(&f);
}
END_TEST

// What no float32 holds in full is zero: workers take it for that, other threads do not.
START_TEST(doubles_below_the_smallest_float_are_zero)
{
    const double values[] = {1e-40, -1e-40, 1e-310, 0x1.fffffep-127, 0x1p-126};
    const npy a = {.type = NPY_F64};
    float floats[5];
    npy_to_floats(&a, (const uint8_t *)values, 5, floats);
    for (int k = 0; k < 4; k++) {
        ck_assert_uint_eq(bits_of_float(floats[k]), values[k] < 0 ? 0x80000000u : 0);
    }
    ck_assert_uint_eq(bits_of_float(floats[4]), 0x00800000u);
}
END_TEST

START_TEST(every_allocation_may_fail_once)
{
    const data_form form = image_form(5, 6, 3, 10);
    data_folder f = data_folder_make();
    char path[FILE_NAME_MAX];
    if (_i == NPZ_FORMS) {
        write_small(&f, "x_train.npy", "|u1", "(4, 5, 6, 3)", 360, 1, 255);
        write_small(&f, "y_train.npy", "|u1", "(4,)", 4, 1, 255);
        assert_survives_short_memory("npy", f.path, &form);
    } else {
        (void)write_small_npz(&f, "a.npz", (npz_form)_i);
        assert_survives_short_memory("npy", data_folder_file(&f, "a.npz", path), &form);
    }
    data_folder_remove(&f);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("sources_arrays");
    TCase *headers = tcase_create("headers");
    tcase_add_test(headers, headers_of_all_versions_and_types_are_read);
    tcase_add_test(headers, what_is_wrong_with_a_header_is_said);
    tcase_add_test(headers, a_prefix_that_is_none_is_said);
    suite_add_tcase(suite, headers);
    TCase *values = tcase_create("values");
    tcase_add_test(values, every_type_in_both_orders_gives_its_values);
    tcase_add_test(values, labels_of_every_whole_type_are_classes);
    tcase_add_test(values, other_models_take_arrays_of_their_slots);
    suite_add_tcase(suite, values);
    TCase *npz = tcase_create("npz");
    tcase_add_loop_test(npz, an_npz_is_read_in_place_or_held, 0, NPZ_FORMS);
    tcase_add_loop_test(npz, arrays_come_of_one_file, 0, NPZ_FORMS);
    tcase_add_test(npz, a_flat_model_takes_images_of_as_many_values);
    tcase_add_loop_test(npz, an_npz_truncated_anywhere_is_an_error, 0, NPZ_FORMS);
    tcase_add_loop_test(npz, an_npz_with_a_changed_byte_never_crashes, 0, NPZ_FORMS);
    tcase_add_test(npz, what_is_wrong_with_a_zip_is_said);
    suite_add_tcase(suite, npz);
    TCase *models = tcase_create("models");
    tcase_add_test(models, arrays_that_the_model_does_not_take_are_refused);
    tcase_add_test(models, held_out_arrays_are_like_the_others);
    tcase_add_test(models, a_sparse_array_is_opened_at_once);
    tcase_add_test(models, an_array_truncated_anywhere_is_an_error);
    tcase_add_test(models, an_array_cut_or_changed_while_in_use_is_an_error);
    tcase_add_test(models, images_of_another_size_are_refused_unread);
    tcase_add_test(models, doubles_below_the_smallest_float_are_zero);
    tcase_add_loop_test(models, every_allocation_may_fail_once, 0, NPZ_FORMS + 1);
    suite_add_tcase(suite, models);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
