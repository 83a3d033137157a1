// SPDX-License-Identifier: Apache-2.0
// The glossary: every word that headroom prints as a field, a column or a label.
#ifndef HEADROOM_TERMS_H
#define HEADROOM_TERMS_H

#include <stddef.h>

typedef struct hr_term {
    const char *name;       // as printed: "peak_in_use_bytes", "fragmentation", "updates/s"
    const char *line;       // one line of meaning
    const char *formula;    // NULL when it is not computed from others
    const char *unit;       // "B", "fraction", "s", "1/s", "" for a name or count
    const char *tensorflow; // what TensorFlow calls it; NULL: has no name there
    const char *pytorch;
    const char *nvidia_smi;
    const char *lesson; // folder name under scripts/lessons; NULL: none yet
} hr_term;

// All terms, sorted by name. Static storage.
const hr_term *hr_terms(size_t *count);
// NULL when there is no such term. A label finds the field it shows: capitals do not matter, a blank is '_', and a
// counter may go without its `_bytes` ("Largest free" is `largest_free_bytes`).
const hr_term *hr_term_find(const char *name);

#endif
