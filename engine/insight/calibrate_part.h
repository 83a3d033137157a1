// SPDX-License-Identifier: Apache-2.0
// What a calibration has measured before it is whole, in a file beside the rates: one that was killed, or whose time was over,
// goes on behind the last program that it measured.
//
//   calibration.part   replaced as a whole behind each program; removed when the calibration ends
//   calibration.lock   held (flock) by the one that measures: two at once would measure each other
//
// It is a cache: whatever is wrong with the file, of another machine, another library, other programs, damaged, it is as if it were
// not there.
#ifndef INSIGHT_CALIBRATE_PART_H
#define INSIGHT_CALIBRATE_PART_H

#include "insight/calibrate_programs.h"

typedef struct calibration_part {
    calibration_samples samples; // of the programs that are done, in their order
    calibration_outcome outcomes[CALIBRATION_PROGRAMS];
    size_t done;
} calibration_part;

// Fills an empty part; `key` is hr_target.key. Nothing where there is none.
void calibration_part_load(const char *path, uint64_t key, calibration_part *part);
bool calibration_part_save(const char *path, uint64_t key, const calibration_part *part);
void calibration_part_remove(const char *path);
void calibration_part_deinit(calibration_part *part);

// *fd is -1 where the folder takes no file: then nobody is kept out. STATE error: another process has it.
HR_MUST_CHECK hr_status calibration_lock(const char *path, int *fd, hr_err *err);
void calibration_unlock(int fd);

#endif
