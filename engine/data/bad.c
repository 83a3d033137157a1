// SPDX-License-Identifier: Apache-2.0
#include "data/bad.h"

void data_bad_init(data_bad *b)
{
    *b = (data_bad){.replaced = 0};
    pthread_mutex_init(&b->lock, NULL);
}

void data_bad_deinit(data_bad *b)
{
    pthread_mutex_destroy(&b->lock);
}

void data_bad_note(data_bad *b, const hr_err *why)
{
    pthread_mutex_lock(&b->lock);
    if (b->first.status == HR_OK) {
        b->first = *why;
    }
    pthread_mutex_unlock(&b->lock);
}
