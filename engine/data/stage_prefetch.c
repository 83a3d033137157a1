// SPDX-License-Identifier: Apache-2.0
// A thread that makes batches ahead of the consumer. There is one buffer more than there are batches to keep
// ready, because the consumer may still read the last one it took:
//
//     buffers    [ taken ][ ready ][ ready ][ being written ][ free ]
//
// Where autotune has fewer kept ready than there are buffers for, what was freed last is written first, so that as few are touched
// as are in use. Otherwise they take turns.
//
// The thread lives between start and stop; seek and close stop it, so that what is before this stage is only ever
// touched by one thread.
#include <inttypes.h>
#include <pthread.h>
#include <string.h>

#include "base/clock.h"
#include "base/host_mem.h"
#include "base/workers.h"
#include "data/stages.h"

typedef struct prefetch_buffer {
    data_room room;
    data_item item;
} prefetch_buffer;

typedef struct prefetch_stage {
    data_stage base;
    pthread_t thread;
    bool running; // there is a thread; the consumer's
    uint32_t batches, batch;
    data_form form;
    pthread_mutex_t lock; // guards what follows
    pthread_cond_t changed;
    bool stopping;
    hr_status status; // why the thread has ended by itself
    hr_err failure;
    prefetch_buffer *taken;            // NULL: none
    prefetch_buffer **waiting, **free; // oldest ready first; a stack: batches + 1 each
    uint32_t free_count;
    atomic_uint ready;         // also read without the lock, for the screen
    atomic_uint used;          // of `batches`: so many are kept ready
    prefetch_buffer buffers[]; // batches + 1
} prefetch_stage;

// ---- the thread -----------------------------------------------------------------------------------------------

// Waits for a buffer to write to; NULL when the thread shall end.
static prefetch_buffer *prefetch_room(prefetch_stage *s)
{
    const uint64_t began_ns = clock_now_ns();
    pthread_mutex_lock(&s->lock);
    while (!s->stopping && s->ready >= s->used) {
        pthread_cond_wait(&s->changed, &s->lock);
    }
    prefetch_buffer *room = s->stopping ? NULL : s->free[--s->free_count];
    pthread_mutex_unlock(&s->lock);
    stage_times_add(&s->base.times, &(stage_spent){.wait_ns = clock_now_ns() - began_ns});
    return room;
}

static void *prefetch_run(void *context)
{
    prefetch_stage *s = context;
    data_stage *before = s->base.before;
    hr_status status = HR_OK;
    while (status == HR_OK) {
        hr_err failure = {0};
        prefetch_buffer *room = prefetch_room(s);
        if (room == NULL) {
            break;
        }
        before->ops->write_to(before, &room->room);
        status = before->ops->next(before, &room->item, &failure);
        stage_times_add(&s->base.times, &(stage_spent){.items = status == HR_OK && !room->item.end});
        pthread_mutex_lock(&s->lock);
        if (status == HR_OK) {
            s->waiting[s->ready++] = room;
        } else {
            s->status = status;
            s->failure = failure;
        }
        pthread_cond_signal(&s->changed);
        pthread_mutex_unlock(&s->lock);
    }
    return NULL;
}

static hr_status prefetch_start(prefetch_stage *s, hr_err *err)
{
    s->stopping = false;
    s->status = HR_OK;
    s->taken = NULL;
    s->ready = 0;
    s->free_count = 0;
    for (uint32_t k = s->batches + 1; k > 0; k--) {
        s->free[s->free_count++] = &s->buffers[k - 1];
    }
    int error = thread_start(&s->thread, prefetch_run, s);
    if (error != 0) {
        hr_status status = HR_FAIL(err, HOST_LIMIT, "prefetch: needed a thread, had: %s", strerror(error));
        hr_err_try(err, "-s pipeline.prefetch=0");
        return status;
    }
    s->running = true;
    return HR_OK;
}

static void prefetch_stop(prefetch_stage *s)
{
    if (s->running) {
        pthread_mutex_lock(&s->lock);
        s->stopping = true;
        pthread_cond_signal(&s->changed);
        pthread_mutex_unlock(&s->lock);
        pthread_join(s->thread, NULL);
        s->running = false;
    }
}

// ---- the consumer ---------------------------------------------------------------------------------------------

// Goes to the top of the stack, or below all others.
static void prefetch_free(prefetch_stage *s, prefetch_buffer *buffer)
{
    const uint32_t at = s->used < s->batches ? s->free_count : 0;
    memmove(s->free + at + 1, s->free + at, (s->free_count - at) * sizeof *s->free);
    s->free[at] = buffer;
    s->free_count++;
}

// The oldest that is ready; the one taken before it is free.
static void prefetch_take(prefetch_stage *s)
{
    if (s->taken != NULL) {
        prefetch_free(s, s->taken);
    }
    s->taken = s->waiting[0];
    s->ready--;
    memmove(s->waiting, s->waiting + 1, s->ready * sizeof *s->waiting);
}

static hr_status prefetch_next(data_stage *stage, data_item *out, hr_err *err)
{
    prefetch_stage *s = (prefetch_stage *)stage;
    *out = (data_item){0};
    if (!s->running) {
        return HR_FAIL(err, STATE, "prefetch: needed a seek after an error, had none");
    }
    pthread_mutex_lock(&s->lock);
    while (s->ready == 0 && s->status == HR_OK) {
        pthread_cond_wait(&s->changed, &s->lock);
    }
    hr_status status = s->ready == 0 ? s->status : HR_OK;
    if (status == HR_OK) {
        prefetch_take(s);
        *out = s->taken->item;
        pthread_cond_signal(&s->changed);
    } else if (err != NULL) {
        *err = s->failure;
    }
    pthread_mutex_unlock(&s->lock);
    return status;
}

static hr_status prefetch_seek(data_stage *stage, data_position p, hr_err *err)
{
    prefetch_stage *s = (prefetch_stage *)stage;
    prefetch_stop(s);
    HR_TRY(stage->before->ops->seek(stage->before, p, err));
    return prefetch_start(s, err);
}

static void prefetch_queue(const data_stage *stage, uint32_t *length, uint32_t *capacity)
{
    const prefetch_stage *s = (const prefetch_stage *)stage;
    *length = atomic_load(&s->ready);
    *capacity = atomic_load(&s->used);
}

static void prefetch_close(data_stage *stage)
{
    prefetch_stage *s = (prefetch_stage *)stage;
    prefetch_stop(s);
    for (uint32_t i = 0; i <= s->batches; i++) {
        data_stage_give_back_room(stage, &s->form, s->batch, &s->buffers[i].room);
    }
    pthread_cond_destroy(&s->changed);
    pthread_mutex_destroy(&s->lock);
    hr_free(s->waiting);
    hr_free(s);
}

static const data_stage_ops prefetch_ops = {
    .name = "prefetch",
    .next = prefetch_next,
    .seek = prefetch_seek,
    .close = prefetch_close,
    .queue = prefetch_queue,
};

static hr_status prefetch_take_buffers(prefetch_stage *s, const data_buffers *buffers, hr_err *err)
{
    const uint64_t bytes = s->batch * data_form_bytes(&s->form);
    s->waiting = hr_calloc(2 * ((size_t)s->batches + 1), sizeof *s->waiting);
    if (s->waiting == NULL) {
        return HR_FAIL(err, NOMEM, "prefetch of %u batches: no host memory for its queue", s->batches);
    }
    s->free = s->waiting + s->batches + 1;
    for (uint32_t i = 0; i <= s->batches; i++) {
        if (data_stage_take_room(&s->base, buffers, s->batch, &s->buffers[i].room, NULL) != HR_OK) {
            hr_status status =
                HR_FAIL(err, NOMEM, "prefetch of %u batches: needed %u buffers of %" PRIu64 " bytes, had %u",
                        s->batches, s->batches + 1, bytes, i);
            hr_err_try(err, "-s pipeline.prefetch=1, or a smaller batch.size");
            return status;
        }
    }
    return HR_OK;
}

hr_status stage_prefetch_open(data_stage *before, uint32_t batches, uint32_t batch,
                              const data_buffers *buffers, data_stage **out, hr_err *err)
{
    *out = NULL;
    prefetch_stage *s = hr_calloc(1, sizeof *s + ((size_t)batches + 1) * sizeof s->buffers[0]);
    if (s == NULL) {
        return HR_FAIL(err, NOMEM, "prefetch stage: needed %zu bytes, had less", sizeof *s);
    }
    s->base.ops = &prefetch_ops;
    s->base.before = before;
    s->batches = batches;
    s->batch = batch;
    s->form = buffers->form;
    atomic_store(&s->used, batches);
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->changed, NULL);
    hr_status status = prefetch_take_buffers(s, buffers, err);
    if (status == HR_OK) {
        status = prefetch_start(s, err);
    }
    if (status != HR_OK) {
        prefetch_close(&s->base);
        return status;
    }
    *out = &s->base;
    return HR_OK;
}

void stage_prefetch_use(data_stage *stage, uint32_t batches)
{
    prefetch_stage *s = (prefetch_stage *)stage;
    pthread_mutex_lock(&s->lock);
    atomic_store(&s->used, batches);
    pthread_cond_signal(&s->changed);
    pthread_mutex_unlock(&s->lock);
}
