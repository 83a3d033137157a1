// SPDX-License-Identifier: Apache-2.0
#include "train/svd.h"

#include "base/shared_library.h"

// lapacke.h of the reference LAPACKE with 32-bit integers, as Debian builds it.
enum { ROW_MAJOR = 101, NOT_FINITE = -5, NO_WORK_MEMORY = -1010, NO_TRANSPOSE_MEMORY = -1011 };
typedef int dgesdd_call(int layout, char job, int m, int n, double *a, int lda, double *s, double *u, int ldu,
                        double *vt, int ldvt);

static struct {
    dgesdd_call *dgesdd;
} lapacke;

static hr_status load(hr_err *err)
{
    static const shared_call calls[] = {{"LAPACKE_dgesdd", 0}};
    static const shared_library wanted = {.soname = "liblapacke.so.3",
                                          .needed_by = "the decomposition of trained weights",
                                          .hint = "apt install liblapacke, or begin without train.resume",
                                          .calls = calls,
                                          .call_count = sizeof calls / sizeof *calls};
    static shared_state state = SHARED_STATE_INIT;
    return shared_library_need(&wanted, &state, &lapacke, err);
}

static hr_status judge(int info, int rows, int columns, hr_err *err)
{
    if (info == 0) {
        return HR_OK;
    }
    if (info == NO_WORK_MEMORY || info == NO_TRANSPOSE_MEMORY) {
        return HR_FAIL(err, NOMEM, "no host memory for LAPACK to decompose weights of %dx%d", rows, columns);
    }
    return HR_FAIL(err, STATE, "LAPACK could not decompose weights of %dx%d: %s (info %d)", rows, columns,
                   info == NOT_FINITE ? "they are not finite"
                   : info > 0         ? "no convergence"
                                      : "it refuses its arguments",
                   info);
}

hr_status svd(double *a, int64_t m, int64_t n, double *u, double *s, double *vt, hr_err *err)
{
    HR_TRY(load(err));
    const int rows = (int)m, columns = (int)n, k = rows < columns ? rows : columns;
    const int info = lapacke.dgesdd(ROW_MAJOR, 'S', rows, columns, a, columns, s, u, k, vt, columns);
    return judge(info, rows, columns, err);
}

hr_status svd_values(double *a, int64_t m, int64_t n, double *s, hr_err *err)
{
    HR_TRY(load(err));
    const int rows = (int)m, columns = (int)n;
    double none[1]; // of vectors that are not asked for
    const int info = lapacke.dgesdd(ROW_MAJOR, 'N', rows, columns, a, columns, s, none, rows, none, columns);
    return judge(info, rows, columns, err);
}
