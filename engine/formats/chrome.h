// SPDX-License-Identifier: Apache-2.0
// Events as Chrome trace JSON ("Trace Event Format", the object form), for chrome://tracing and ui.perfetto.dev. One
// process per device: counters in_use, pool and requested; steps, evaluations and phases as slices; every allocation as
// an asynchronous span named as its tensor; regions and out-of-memories as instants. Times are microseconds.
#ifndef FORMATS_CHROME_H
#define FORMATS_CHROME_H

#include "formats/exporter.h"

extern const trace_writer trace_writer_chrome;

#endif
