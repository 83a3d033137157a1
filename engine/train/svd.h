// SPDX-License-Identifier: Apache-2.0
// The singular value decomposition, by LAPACK's divide and conquer (dgesdd) through LAPACKE, which is opened when it is first
// needed. Its one function is declared in svd.c: building needs nothing of it. Any thread.
#ifndef TRAIN_SVD_H
#define TRAIN_SVD_H

#include <stdint.h>

#include "headroom/status.h"

// a[m][n] = u[m][k] · diag(s[k]) · vt[k][n], k = min(m, n), largest first; `a` is lost. DEPENDENCY error without LAPACKE, STATE
// error where the numbers are not finite or do not converge, NOMEM where LAPACK lacks host memory.
HR_MUST_CHECK hr_status svd(double *a, int64_t m, int64_t n, double *u, double *s, double *vt, hr_err *err);

// The same singular values alone, at a third of the cost.
HR_MUST_CHECK hr_status svd_values(double *a, int64_t m, int64_t n, double *s, hr_err *err);

#endif
