// SPDX-License-Identifier: Apache-2.0
// The memo of target answers: an open-addressing table keyed by a 128-bit hash of target, query and limit. Answers of
// targets that are slow to ask are kept in a file between two starts.
#include "program/target.h"

#include <pthread.h>
#include <string.h>

#include "base/build_id.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/host_mem.h"
#include "base/text.h"

typedef struct memo_entry {
    uint64_t key[2]; // both 0: empty
    target_answer answer;
    bool kept; // goes into the file
} memo_entry;

enum { MEMO_FIRST_CAPACITY = 1024, MEMO_FILE_LIMIT_BYTES = 64 << 20 };

static pthread_rwlock_t memo_lock = PTHREAD_RWLOCK_INITIALIZER;
static memo_entry *memo;
static uint64_t memo_capacity, memo_count;
static uint64_t memo_unsaved; // kept answers that no file has

static bool is_empty(const memo_entry *e)
{
    return e->key[0] == 0 && e->key[1] == 0;
}

static memo_entry *memo_place(memo_entry *table, uint64_t capacity, const uint64_t key[2])
{
    uint64_t at = key[0] & (capacity - 1);
    while (!is_empty(&table[at]) && (table[at].key[0] != key[0] || table[at].key[1] != key[1])) {
        at = (at + 1) & (capacity - 1);
    }
    return &table[at];
}

static bool memo_grow(void)
{
    uint64_t capacity = memo_capacity == 0 ? MEMO_FIRST_CAPACITY : memo_capacity * 2;
    memo_entry *table = hr_calloc(capacity, sizeof *table);
    if (table == NULL) {
        return false;
    }
    for (uint64_t k = 0; k < memo_capacity; k++) {
        if (!is_empty(&memo[k])) {
            *memo_place(table, capacity, memo[k].key) = memo[k];
        }
    }
    hr_free(memo);
    memo = table;
    memo_capacity = capacity;
    return true;
}

static bool memo_find(const uint64_t key[2], target_answer *out)
{
    pthread_rwlock_rdlock(&memo_lock);
    const memo_entry *e = memo_capacity == 0 ? NULL : memo_place(memo, memo_capacity, key);
    bool found = e != NULL && !is_empty(e);
    if (found) {
        *out = e->answer;
    }
    pthread_rwlock_unlock(&memo_lock);
    return found;
}

// A full table only costs time: the answer is asked again. The lock is held for writing.
static void memo_add(const memo_entry *entry)
{
    if (memo_count * 2 < memo_capacity || memo_grow()) {
        memo_entry *e = memo_place(memo, memo_capacity, entry->key);
        memo_count += is_empty(e);
        *e = *entry;
    }
}

static memo_entry entry_of(const hr_target *target, const op_query *q, uint64_t question)
{
    memo_entry entry = {.key = {hash64_mix(target->key, question), target->key}, .kept = target->slow_to_ask};
    op_query_hash(q, entry.key);
    entry.key[1] |= 1;
    return entry;
}

static void memo_keep(const memo_entry *entry)
{
    pthread_rwlock_wrlock(&memo_lock);
    memo_add(entry);
    memo_unsaved += entry->kept;
    pthread_rwlock_unlock(&memo_lock);
}

static void remember(memo_entry *entry, target_answer *answer)
{
    answer->impl = answer->impl == NULL ? NULL : target_impl_name("", answer->impl);
    entry->answer = *answer;
    memo_keep(entry);
}

hr_status target_ask(const hr_target *target, const op_query *q, uint64_t workspace_limit, target_answer *out,
                     hr_err *err)
{
    memo_entry entry = entry_of(target, q, workspace_limit);
    if (memo_find(entry.key, out)) {
        return HR_OK;
    }
    memset(out, 0, sizeof *out);
    if ((q->op == HR_OP_OPAQUE || q->op == HR_OP_OPAQUE_BWD) && strcmp(target->name, "plan") != 0) {
        const hr_status status =
            HR_FAIL(err, DEVICE,
                    "an opaque layer: needed one that is computed, had its shapes alone, which %s cannot run",
                    target->name);
        hr_err_try(err, "headroom plan PRESET -s device.kind=plan");
        return status;
    }
    if (target->estimates != NULL) {
        const hr_target *from = target->estimates->from;
        target->estimates->count++;
        return from->ask(from->context, q, workspace_limit, out, err);
    }
    HR_TRY(target->ask(target->context, q, workspace_limit, out, err));
    remember(&entry, out);
    return HR_OK;
}

hr_status target_ask_pytorch(const hr_target *target, const op_query *q, const pytorch_images *images,
                             uint64_t workspace_limit, target_answer *out, hr_err *err)
{
    // another question than ours of the same operation
    const uint64_t words[] = {'p', images->channels_last, images->tf32};
    memo_entry entry = entry_of(target, q, hash64(words, sizeof words, workspace_limit));
    if (memo_find(entry.key, out)) {
        return HR_OK;
    }
    memset(out, 0, sizeof *out);
    if (target->estimates != NULL) {
        target->estimates->count++;
        return HR_OK;
    }
    HR_TRY(target->ask_pytorch(target->context, q, images, workspace_limit, out, err));
    remember(&entry, out);
    return HR_OK;
}

void target_forget(void)
{
    pthread_rwlock_wrlock(&memo_lock);
    hr_free(memo);
    memo = NULL;
    memo_capacity = memo_count = memo_unsaved = 0;
    pthread_rwlock_unlock(&memo_lock);
}

// ---- the file -------------------------------------------------------------------------------------------------
//
// head, then `count` records. It is a cache: whatever is wrong with it, it is as if it were not there. It belongs to one
// build: another one may have kernels that ask for other workspaces.

typedef struct memo_head {
    char magic[16];
    uint64_t build; // build_id_hash
    uint64_t record_bytes, count;
    uint64_t hash; // of the records
} memo_head;

// An answer without padding and pointers.
typedef struct memo_record {
    uint64_t key[2];
    uint64_t workspace_bytes, saved_bytes;
    uint64_t reorder_bytes[TARGET_MAX_REORDERS];
    uint8_t reorder_operand[TARGET_MAX_REORDERS], reorder_count;
    uint8_t instead, behind, named, reserved;
    char impl[TARGET_IMPL_MAX];
} memo_record;

_Static_assert(sizeof(memo_record) == 2 * 8 + 2 * 8 + TARGET_MAX_REORDERS * 9 + 5 + TARGET_IMPL_MAX,
               "a record of the file has no padding");

static const char magic[16] = "headroom.memo/6";

static void put_record(const memo_entry *e, memo_record *to)
{
    const target_answer *a = &e->answer;
    memcpy(to->key, e->key, sizeof to->key);
    to->workspace_bytes = a->workspace_bytes;
    to->saved_bytes = a->saved_bytes;
    to->reorder_count = a->reorder_count;
    for (uint8_t k = 0; k < a->reorder_count; k++) {
        to->reorder_operand[k] = a->reorder[k].operand;
        to->reorder_bytes[k] = a->reorder[k].bytes;
    }
    to->instead = a->instead;
    to->behind = a->behind;
    to->named = a->impl != NULL;
    (void)text_copy(to->impl, sizeof to->impl, a->impl == NULL ? "" : a->impl);
}

static memo_entry entry_read(const memo_record *r)
{
    memo_entry e = {.key = {r->key[0], r->key[1]}, .kept = true};
    target_answer *a = &e.answer;
    a->workspace_bytes = r->workspace_bytes;
    a->saved_bytes = r->saved_bytes;
    a->reorder_count = r->reorder_count < TARGET_MAX_REORDERS ? r->reorder_count : TARGET_MAX_REORDERS;
    for (uint8_t k = 0; k < a->reorder_count; k++) {
        a->reorder[k].operand = r->reorder_operand[k];
        a->reorder[k].bytes = r->reorder_bytes[k];
    }
    a->instead = r->instead;
    a->behind = r->behind;
    a->impl =
        r->named && memchr(r->impl, '\0', sizeof r->impl) != NULL ? target_impl_name("", r->impl) : NULL;
    return e;
}

static const memo_record *records_of(const char *data, size_t bytes, memo_head *head)
{
    if (bytes < sizeof *head) {
        return NULL;
    }
    memcpy(head, data, sizeof *head);
    size_t left = bytes - sizeof *head;
    bool whole = memcmp(head->magic, magic, sizeof magic) == 0 && head->build == build_id_hash() &&
                 head->record_bytes == sizeof(memo_record) && head->count == left / sizeof(memo_record) &&
                 left % sizeof(memo_record) == 0 && hash64(data + sizeof *head, left, 0) == head->hash;
    return whole ? (const memo_record *)(const void *)(data + sizeof *head) : NULL;
}

void target_memo_load(const char *path)
{
    char *data = NULL;
    size_t bytes = 0;
    memo_head head;
    if (file_read(path, MEMO_FILE_LIMIT_BYTES, &data, &bytes, NULL) != HR_OK) {
        return;
    }
    const memo_record *records = records_of(data, bytes, &head);
    pthread_rwlock_wrlock(&memo_lock);
    for (uint64_t k = 0; records != NULL && k < head.count; k++) {
        memo_record r;
        memcpy(&r, &records[k], sizeof r);
        const memo_entry e = entry_read(&r);
        memo_add(&e);
    }
    pthread_rwlock_unlock(&memo_lock);
    hr_free(data);
}

static hr_status write_records(file_writer *w, const memo_record *records, uint64_t count, hr_err *err)
{
    memo_head head = {.build = build_id_hash(), .record_bytes = sizeof *records, .count = count};
    memcpy(head.magic, magic, sizeof magic);
    head.hash = hash64(records, count * sizeof *records, 0);
    HR_TRY(file_writer_add(w, &head, sizeof head, err));
    return file_writer_add(w, records, count * sizeof *records, err);
}

// What is worth keeping, in the order of the table; NULL when there is nothing new or no memory for it.
static memo_record *take_unsaved(uint64_t *count)
{
    memo_record *records = NULL;
    *count = 0;
    pthread_rwlock_wrlock(&memo_lock);
    records = memo_unsaved > 0 ? hr_calloc(memo_count, sizeof *records) : NULL;
    for (uint64_t k = 0; records != NULL && k < memo_capacity; k++) {
        if (!is_empty(&memo[k]) && memo[k].kept) {
            put_record(&memo[k], &records[(*count)++]);
        }
    }
    memo_unsaved = 0;
    pthread_rwlock_unlock(&memo_lock);
    return records;
}

bool target_memo_save(const char *path)
{
    uint64_t count = 0;
    memo_record *records = take_unsaved(&count);
    file_writer *w = NULL;
    bool written = false;
    if (records != NULL && hr_file_make_folders(path) && file_writer_open(path, &w, NULL) == HR_OK) {
        written = write_records(w, records, count, NULL) == HR_OK;
        if (written) {
            written = file_writer_commit(w, NULL) == HR_OK;
        } else {
            file_writer_abandon(w);
        }
    }
    hr_free(records);
    return written;
}

bool target_absorbs(const hr_target *target, target_absorption what, hr_op op)
{
    return target->absorbs != NULL && target->absorbs(target->context, what, op);
}
