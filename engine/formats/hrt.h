// SPDX-License-Identifier: Apache-2.0
// Our own binary trace (.hrt): every event of a run as it was, with the names of its tensors, in about a seventh of the
// bytes of CSV. Numbers of fixed width are little-endian; v is a varint, z a folded one (formats/varint.h): a difference.
//
//   file    = head frame* end
//   head    = 89 48 52 54 0D 0A 1A 0A   version u16 (1)   0 u16   crc u32 of these 12 bytes
//   frame   = bytes u32 (1 … 4 MiB)   records u32   crc u32 of these 8 bytes and the payload   payload
//   end     = 0 u32   frames u32   crc u32 of these 8 bytes             nothing follows
//   payload = record*
//   record  = 00 subject | kind u8 (hr_event_kind, not 0) [subject's number v] changed u8 context time_ns z body
//   subject = tensor id v   0 v, or 1 + length v and the name: the next number of subjects in the file, from 1
//   context = what bits of `changed` announce, in this order: 1 category u8, 2 phase u8, 4 device u8, 8 step z,
//             16 instr z, 32 seq z (against the last one + 1), 64 version v and reserved v; all against the last event,
//             and the category of a memory event against the subject's last
//   body    = of memory events (alloc, free, grow, shrink, oom; they alone have a subject, 0 for none): said u8, and what
//             its bits announce: 1 address z, 2 requested_bytes z, 4 allocated_bytes z, 8 stream z against the subject's
//             last; 16 in_use_bytes z, 32 pool_bytes z against what the event makes of the last ones; 64
//             largest_free_bytes v, else 0
//             of others: length v, the union of hr_event, without the zeros at its end
//
// What there is no last one of is zero. crc is CRC-32 (IEEE 802.3). A file that ends early, or of which a bit is wrong, is
// refused and not read in part.
#ifndef FORMATS_HRT_H
#define FORMATS_HRT_H

#include "formats/exporter.h"
#include "formats/formats.h"

enum { HRT_VERSION = 1, HRT_NAME_MAX = 64 << 10 }; // longer names are cut

extern const trace_writer trace_writer_hrt;
extern const trace_format trace_format_hrt; // the rows are those that the same run has as CSV

// Told of every event in order; `tensor` is its name, NULL where it has none, and lives until the call returns. Another
// status than HR_OK ends the reading.
typedef hr_status (*hrt_visitor)(void *context, const hr_event *event, const char *tensor, hr_err *err);

// READ error with the byte and what was expected there; NOMEM. The visitor may have been told of events by then.
HR_MUST_CHECK hr_status hrt_read_events(input *in, hrt_visitor visit, void *context, hr_err *err);

#endif
