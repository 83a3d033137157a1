// SPDX-License-Identifier: Apache-2.0
// The kinds of files that a trace is read from and written to.
#include "formats/chrome.h"
#include "formats/csv.h"
#include "formats/hrt.h"
#include "formats/lifetimes_csv.h"
#include "formats/lifetimes_write.h"
#include "formats/memory_dump.h"
#include "formats/memory_dump_export.h"
#include "formats/memory_profile.h"
#include "formats/readers.h"
#include "formats/tensorflow_log.h"
#include "formats/torch_snapshot.h"
#include "formats/torch_snapshot_write.h"

const trace_format *const trace_formats[] = {
    &trace_format_torch_snapshot,
    &trace_format_hrt,
    &trace_format_memory_dump,
    &trace_format_csv,
    &trace_format_rmm,
    &trace_format_lifetimes,
    &trace_format_tensorflow, // every text: the last
    NULL,
};

const trace_writer *const trace_writers[] = {
    &trace_writer_csv,
    &trace_writer_hrt,
    &trace_writer_chrome,
    &trace_writer_lifetimes,
    &trace_writer_memory_profile,
    &trace_writer_memory_dump,
    &trace_writer_torch_snapshot,
    NULL,
};

const hr_trace_format *hr_trace_format_row(size_t index)
{
    return index + 1 < sizeof trace_writers / sizeof trace_writers[0] ? &trace_writers[index]->about : NULL;
}
