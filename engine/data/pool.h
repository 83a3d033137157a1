// SPDX-License-Identifier: Apache-2.0
// The elements of a shuffle's buffer (pipeline.shuffle_of=elements): each place of the buffer has room for one sample, which is
// loaded when its number enters the buffer and given out when it is drawn. Numbers are drawn far faster than samples are
// loaded, so a batch draws all its numbers first; what it then loads and takes, it does on several threads:
//
//   want(place, number) … draw … want …        in the chain, by number
//   take side by side ─▶ load side by side      in rounds: no round takes a place that it loads
//
// The chain's thread owns it, but for pool_load and data_pool_at of different places, which any thread may ask for.
#ifndef DATA_POOL_H
#define DATA_POOL_H

#include "headroom/status.h"

#include "data/map.h"

typedef struct data_pool data_pool;

// Of each place, beside the sample's own bytes and with mixes_epochs its epoch.
enum { DATA_POOL_ENTRY_BYTES = 20, DATA_POOL_EPOCH_BYTES = 8 };

typedef struct data_pool_form {
    uint32_t places;
    bool mapped;       // what lies there are values, as the map writes them; else samples as files have them
    bool mixes_epochs; // samples of several may be wanted at once
} data_pool_form;

// What the map borrows is borrowed until close. NOMEM error.
HR_MUST_CHECK hr_status data_pool_open(const data_map *map, const data_pool_form *form, data_pool **out,
                                       hr_err *err);
void data_pool_close(data_pool *p); // NULL is fine
uint64_t data_pool_bytes(const data_map *map, const data_pool_form *form);

// The sample is to lie at `place`, where nothing is that is still wanted.
void data_pool_want(data_pool *p, uint32_t place, const data_ask *ask);
// Is it wanted there and not loaded?
bool data_pool_is_missing(const data_pool *p, uint32_t place);
void data_pool_forget(data_pool *p); // nothing is wanted any more
uint32_t data_pool_missing(const data_pool *p);
// Loads missing sample `k` of data_pool_missing. Once all of them are, data_pool_forget.
HR_MUST_CHECK hr_status data_pool_load(data_pool *p, uint32_t k, uint8_t *scratch, hr_err *err);
// Writes what lies at `place` to a batch.
HR_MUST_CHECK hr_status data_pool_write(const data_pool *p, uint32_t place, const data_ask *ask,
                                        uint8_t *scratch, const data_room *to, hr_err *err);

#endif
