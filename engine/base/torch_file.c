// SPDX-License-Identifier: Apache-2.0
#include "base/torch_file.h"

#include <string.h>

#include "base/input.h"

enum { LOCAL_HEADER_BYTES = 30, NAME_LENGTH_AT = 26 };

// The name of the first member of a zip, which lies behind 30 bytes: FOLDER/data.pkl, or FOLDER/data/N in TorchScript.
static bool zip_begins(const char *start, size_t bytes)
{
    if (bytes < LOCAL_HEADER_BYTES || memcmp(start, "PK\3\4", 4) != 0) {
        return false;
    }
    const char *name = start + LOCAL_HEADER_BYTES;
    const size_t length = (uint8_t)start[NAME_LENGTH_AT] | (size_t)(uint8_t)start[NAME_LENGTH_AT + 1] << 8;
    const size_t room = bytes - LOCAL_HEADER_BYTES;
    const char *slash = length <= room ? memchr(name, '/', length) : NULL;
    const size_t rest = slash == NULL ? 0 : length - (size_t)(slash - name);
    return (rest == 9 && memcmp(slash, "/data.pkl", 9) == 0) ||
           (rest > 6 && memcmp(slash, "/data/", 6) == 0 && slash[6] >= '0' && slash[6] <= '9');
}

bool torch_file_begins(const char *start, size_t bytes)
{
    static const char magic[] = "\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.";
    return zip_begins(start, bytes) ||
           (bytes >= sizeof magic - 1 && memcmp(start, magic, sizeof magic - 1) == 0);
}

bool torch_file_is_one(const char *path)
{
    input in;
    if (input_open(&in, path, NULL) != HR_OK) {
        return false;
    }
    const size_t bytes = input_ahead(&in, TORCH_FILE_SIGN_BYTES);
    const bool is_one = input_status(&in, NULL) == HR_OK && torch_file_begins(input_here(&in), bytes);
    input_close(&in);
    return is_one;
}

hr_status torch_file_refuse(hr_status status, const char *path, hr_err *err)
{
    (void)hr_err_set(err, status, __FILE__, __LINE__,
                     "%.200s: needed a network, had a PyTorch checkpoint, which holds weights and no network",
                     path);
    hr_err_try(err, "headroom plan FOLDER/config.json, where one was published beside it; or of the module "
                    "python3 scripts/export/torch_to_headroom.py MODULE:CLASS --shape 3,224,224 --output "
                    "net.yaml; or of its training python3 scripts/record/torch_record.py --output "
                    "step.pickle train.py");
    return status;
}

hr_status torch_file_as_network(const char *path, hr_err *err)
{
    input in;
    HR_TRY(input_open(&in, path, err));
    const size_t bytes = input_ahead(&in, TORCH_FILE_SIGN_BYTES);
    hr_status status = input_status(&in, err);
    if (status == HR_OK && torch_file_begins(input_here(&in), bytes)) {
        status = torch_file_refuse(HR_PRESET, path, err);
    } else if (status == HR_OK) {
        status =
            HR_FAIL(err, PRESET, "%.200s: needed a network, or a PyTorch memory snapshot, had neither", path);
        hr_err_try(err, "python3 scripts/record/torch_record.py --output step.pickle train.py, and then "
                        "headroom plan step.pickle");
    }
    input_close(&in);
    return status;
}
