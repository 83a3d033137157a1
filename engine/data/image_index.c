// SPDX-License-Identifier: Apache-2.0
#include "data/image_index.h"

#include <inttypes.h>
#include <string.h>
#include <strings.h>

#include "base/host_mem.h"
#include "data/listing.h"

bool image_is_named(const char *name)
{
    static const char *const endings[] = {".jpg", ".jpeg", ".png",  ".jpe", ".jfif",
                                          ".gif", ".bmp",  ".webp", ".tif", ".tiff"};
    bool is_named = false;
    for (size_t k = 0; k < sizeof endings / sizeof *endings && !is_named; k++) {
        is_named = name_ends_in(name, endings[k]);
    }
    return is_named;
}

hr_status image_index_take(image_index *index, const char *path, uint32_t named_classes, hr_err *err)
{
    const uint64_t images = index->count[DATA_TRAIN] + index->count[DATA_EVAL];
    if (images > UINT32_MAX || index->names_bytes > UINT32_MAX) {
        return HR_FAIL(err, DATA, "%s: needed at most 4294967295 images and bytes of their names, had more",
                       path);
    }
    const uint64_t entries_bytes = images * sizeof *index->entry;
    const uint64_t classes_bytes = named_classes * sizeof *index->class_name;
    index->entry = images > 0 ? hr_calloc(images, sizeof *index->entry) : NULL;
    if (index->names == NULL) {
        index->names = index->names_bytes > 0 ? hr_calloc(index->names_bytes, 1) : NULL;
    }
    index->class_name = named_classes > 0 ? hr_calloc(named_classes, sizeof *index->class_name) : NULL;
    if ((images > 0 && index->entry == NULL) || (index->names_bytes > 0 && index->names == NULL) ||
        (named_classes > 0 && index->class_name == NULL)) {
        return HR_FAIL(err, NOMEM, "%s: needed %" PRIu64 " bytes for where its images are, had less", path,
                       entries_bytes + index->names_bytes + classes_bytes);
    }
    index->held_bytes = entries_bytes + index->names_bytes + classes_bytes;
    return HR_OK;
}

void image_index_free(image_index *index)
{
    hr_free(index->entry);
    hr_free(index->names);
    hr_free(index->class_name);
    *index = (image_index){.names = NULL};
}

void image_place_close(image_place *p)
{
    if (p->ops != NULL) {
        p->ops->close(p->store);
    }
    image_index_free(&p->index);
    *p = (image_place){.ops = NULL};
}
