// SPDX-License-Identifier: Apache-2.0
// What the members of an archive, one behind the other, are as images: the rules by which names become samples,
// classes and sets.
//
//   CLASS/NAME.jpg                      the class is the folder that a file
//   lies in, or the one behind train, val or test KEY.jpg KEY.cls (WebDataset)
//   where any .cls is: members up to the first dot of their names are one
//   sample, and the
//                                       .cls has its class as a number
//
// All members are shown twice, in the same order: members_learn ends the first pass.
#ifndef DATA_IMAGE_MEMBERS_H
#define DATA_IMAGE_MEMBERS_H

#include "data/image_index.h"
#include "data/listing.h"

enum { MEMBER_NAME_MAX = 1024, MEMBER_CLASS_MOST_BYTES = 32 };

typedef struct member {
    const char *archive; // for sentences
    const char *name;    // the whole path
    uint64_t size_bytes;
    name_use use; // of the archive that it is in
    uint32_t file;
} member;

typedef struct image_members image_members;

// Reads the bytes of the member that is shown: a .cls, of at most MEMBER_CLASS_MOST_BYTES. And where an image's bytes
// begin, as image_entry has it.
typedef struct member_reader {
    void *context;
    hr_status (*text)(void *context, const member *m, char *to, hr_err *err);
    hr_status (*place)(void *context, const member *m, uint32_t *at, hr_err *err);
    bool (*looks)(void *context,
                  const member *m); // like an image; NULL: names decide
} member_reader;

HR_MUST_CHECK hr_status members_open(const image_options *options, const member_reader *reader,
                                     image_index *index, image_members **out, hr_err *err);
void members_close(image_members *m); // NULL is fine

HR_MUST_CHECK hr_status members_show(image_members *m, const member *one, hr_err *err);
// The archive is over: what follows belongs to no sample of it.
HR_MUST_CHECK hr_status members_end(image_members *m, hr_err *err);
// After the first pass: index->count and classes are known, but for sets that came to nothing. The caller takes the
// index then.
void members_learn(image_members *m);
// After the second. DATA error when it showed others than the first.
HR_MUST_CHECK hr_status members_finish(image_members *m, const char *path, hr_err *err);

#endif
