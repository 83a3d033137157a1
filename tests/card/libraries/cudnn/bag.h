// SPDX-License-Identifier: Apache-2.0
// Descriptors of the emulated cuDNN: bags of attributes. A table says which attributes a descriptor has, of what type and
// how many, and which it cannot be finished without. What is finished is read-only; it lives as long as something that
// names it.
//
//     created ── attributes are set ──→ finalized ── attributes are read, other descriptors name it
#ifndef CARD_CUDNN_BAG_H
#define CARD_CUDNN_BAG_H

#include <cudnn.h>
#include <stdbool.h>
#include <stdint.h>

#include "numbers.h"

enum { BAG_VALUES = 12, BAG_MANY = 64, BAG_TEXT = 1 << 20 };

typedef struct bag_value {
    cudnnBackendAttributeName_t name;
    cudnnBackendAttributeType_t type;
    int64_t count;
    void *data;
} bag_value;

typedef struct bag {
    cudnnBackendDescriptorType_t kind;
    bool finalized;
    uint32_t names; // of it: its maker's, and those of other bags
    uint32_t count;
    bag_value value[BAG_VALUES];
} bag;

typedef struct bag_row {
    cudnnBackendDescriptorType_t kind;
    cudnnBackendAttributeName_t name;
    cudnnBackendAttributeType_t type, other_type; // either
    int64_t max;
    bool required;
    cudnnBackendDescriptorType_t names; // of descriptors: of what kind
} bag_row;

uint64_t bag_type_bytes(cudnnBackendAttributeType_t type); // 0: not emulated
bool bag_kind_is_known(cudnnBackendDescriptorType_t kind);

bag *bag_create(cudnnBackendDescriptorType_t kind);
void bag_release(bag *b);
cudnnStatus_t bag_set(bag *b, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                      int64_t count, const void *data);
// BAD_PARAM when something that the table requires is missing.
cudnnStatus_t bag_is_whole(const bag *b);
// As it was set; *count is how many there are.
cudnnStatus_t bag_get(const bag *b, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                      int64_t capacity, int64_t *count, void *data);

const bag_value *bag_find(const bag *b, cudnnBackendAttributeName_t name); // NULL: was not set
int64_t bag_int(const bag *b, cudnnBackendAttributeName_t name, int64_t otherwise);
double bag_real(const bag *b, cudnnBackendAttributeName_t name, double otherwise);
bag *bag_bag(const bag *b, cudnnBackendAttributeName_t name); // the first; NULL: was not set

// What is wrong, for cudnnGetLastErrorString; returns `status`.
cudnnStatus_t refuse(cudnnStatus_t status, const char *format, ...) __attribute__((format(printf, 2, 3)));
const char *refusal(void);

#endif
