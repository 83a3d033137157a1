// SPDX-License-Identifier: Apache-2.0
// The allocator that decides nothing at run time: every request was announced (allocator.h: allocator_plan), packed
// (pack.h), and finds its place by its tensor's tag.
//
//   one region, exactly as high as what is planned
//   ├ resident, in the order of the plan ┤├ the step that is followed, packed ─────────────┤
//                                          every step begins here; the highest one decides
//
// In use are whole 256 B, as with bfc; free chunks are the holes between what lives.
#ifndef MEMORY_STATIC_H
#define MEMORY_STATIC_H

#include "memory/allocator.h"

// Of `config` only the limit matters: a plan needs no growth and no collection.
HR_MUST_CHECK hr_status static_create(const allocator_config *config, backing *source, trace_bus *bus,
                                      allocator **out, hr_err *err);

#endif
