// SPDX-License-Identifier: Apache-2.0
// Operations: one row per operation with its operands, shapes, gradient, what the eager tape keeps, cost and
// in-place rule. The rows are data; autodiff, liveness, devices and listing read them. A new operation is a row
// here (in its family's file), a shape function, and a kernel in each device.
//
// Letters: N batch, H W image, C channels in, F channels out, I O features in and out, K classes, V entries of a
// table, D features of an entry; ... are one to three dimensions, N first.
// Images are NHWC, convolution weights HWIO [kh, kw, C/groups, F] (depthwise: groups = C, [kh, kw, 1, C*mult]),
// dense weights [I, O].
#ifndef OPS_OP_H
#define OPS_OP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "headroom/status.h"

// X(ID, "name in listings")
//                      operands: inputs → outputs ([] optional; = updated in place, same tensor on both sides)
#define HR_OP_MAP(X)                                                                                                 \
    X(ALLOC, "alloc")   /* → t: takes t's bytes from the allocator */                                              \
    X(FREE, "free")     /* t → : gives them back */                                                                \
    X(REPEAT, "repeat") /* → : what stands up to END runs attr.count times, each round on its batch */             \
    X(END, "end")       /* → : the end of REPEAT; what was allocated since then is freed before it */              \
    X(RETAIN, "retain") /* t → : the executor keeps t's bytes until the build goes: a leak on purpose */           \
    X(HOLD, "hold")   /* → t: what a framework asks for here and our kernels do without (execution.as) */          \
    X(INPUT, "input") /* → slot: host batch to device; attr.slot 0 = x, 1 = labels */                              \
    X(READ, "read")   /* t → : one scalar to the host; attr.slot 0 = loss, 1 = correct */                          \
    X(REORDER, "reorder") /* t → t': the layout that a library wants (attr.peer) */                                \
    X(OFFLOAD, "offload") /* t → t in host memory; lane d2h */                                                     \
    X(FETCH, "fetch")     /* t in host memory → t; lane h2d */                                                     \
    X(RECORD, "record")   /* → : event attr.slot happens when its lane has come here */                            \
    X(WAIT, "wait")       /* [t] → : its lane goes on after event attr.slot; t lives until then */                 \
    X(RESHAPE, "reshape") /* x → y: a view, no bytes move */                                                       \
    X(CONV2D, "conv2d")   /* x[N,H,W,C], w, [b[F]] → y[N,H',W',F]; attr.act */                                     \
    X(CONV2D_BWD_DATA, "conv2d_bwd_data")       /* dy, w → dx */                                                   \
    X(CONV2D_BWD_WEIGHTS, "conv2d_bwd_weights") /* x, dy → dw, [db] */                                             \
    X(CONV2D_TRANSPOSE, "conv2d_transpose") /* x[N,H,W,C], w[kh,kw,F,C], [b[F]] → y[N,H',W',F]; H' =       \
                                     (H−1)*stride + kh − pads; a pad behind may be negative, above −stride */       \
    X(CONV2D_TRANSPOSE_BWD_DATA, "conv2d_transpose_bwd_data")       /* dy, w → dx */                               \
    X(CONV2D_TRANSPOSE_BWD_WEIGHTS, "conv2d_transpose_bwd_weights") /* x, dy → dw, [db] */                         \
    X(DENSE, "dense") /* x[...,I], w[I,O], [b[O]] → y[...,O]; attr.act; flag TRANSPOSE: w[O,I] */                  \
    X(DENSE_BWD_DATA, "dense_bwd_data")       /* dy, w → dx */                                                     \
    X(DENSE_BWD_WEIGHTS, "dense_bwd_weights") /* x, dy → dw, [db] */                                               \
    X(BATCH_NORM,                                                                                                    \
      "batch_norm") /* x, gamma, beta, =mean, =var, [summand, [gamma, beta, mean, var]] → y, saved  \
                                     mean[C], saved var[C]; y is attr.act of the normalised x, to which summand is \
                                     added, itself normalised with those behind it; the saved variance is the \
                                     biased one; running = (1-m)*running + m*batch, with the unbiased         \
                                     variance, m = attr.momentum; attr.epsilon, attr.act */              \
    X(BATCH_NORM_STATISTICS, /* x, =mean, =var → saved mean[C], saved var[C]: BATCH_NORM without y */              \
      "batch_norm_statistics")                                                                                       \
    X(BATCH_NORM_EVAL, "batch_norm_eval") /* x, gamma, beta, mean, var → y; attr.epsilon, attr.act */              \
    X(BATCH_NORM_APPLY,                                                                                              \
      "batch_norm_apply") /* x, gamma, beta, saved mean, saved var, [summand, [gamma, beta, mean, var]] →   \
                                     y: the bits of BATCH_NORM's y, and no running statistic moves; attr.act */      \
    X(BATCH_NORM_BWD,                                                                                                \
      "batch_norm_bwd")     /* x, dy, gamma, saved mean, saved var, [beta] → dx, dgamma, dbeta; \
                                     with beta dy counts only where attr.act did not cut y. Or y for    \
                                     beta, [added to dy] → …, what of dy counts. Or for beta the index of a \
                                     MAX_POOL behind y, with its window: dy is the gradient of what it made */                  \
    X(RELU, "relu")         /* x → y */                                                                            \
    X(RELU_BWD, "relu_bwd") /* y, dy, [more] → dx: dy + more where y > 0 */                                        \
    X(MAX_POOL, "max_pool") /* x, [gamma, beta, mean, var] → y, [index u8: place in the window, row-major; \
                                     first of ties]; of attr.act of x normalised with attr.epsilon, where     \
                                     they are there */       \
    X(MAX_POOL_BWD, "max_pool_bwd") /* x, y, dy → dx: dy to the first place in the window that equals y */         \
    X(MAX_POOL_BWD_INDEX, "max_pool_bwd_index")   /* index, dy → dx */                                             \
    X(AVG_POOL, "avg_pool")                       /* x → y: mean of the places inside the image */                 \
    X(AVG_POOL_BWD, "avg_pool_bwd")               /* dy → dx */                                                    \
    X(GLOBAL_AVG_POOL, "global_avg_pool")         /* x[N,H,W,C] → y[N,C] */                                        \
    X(GLOBAL_AVG_POOL_BWD, "global_avg_pool_bwd") /* dy → dx */                                                    \
    X(ADD, "add")                                 /* a, b → y; attr.act */                                         \
    X(RELU6, "relu6")                             /* x → y = min(max(x, 0), 6) */                                  \
    X(RELU6_BWD, "relu6_bwd")                     /* y, dy, [more] → dx: dy + more where 0 < y < 6 */              \
    X(MULTIPLY, "multiply")                       /* a, b → y */                                                   \
    X(MULTIPLY_BWD, "multiply_bwd")               /* a, b, dy → da, db */                                          \
    X(SCALE, "scale")                             /* x, [factor[1]] → y = x*attr.scale*factor */                   \
    X(ZEROS, "zeros")                             /* → y */                                                        \
    X(CONCAT, "concat")                           /* 2..6 inputs → y, one after another on attr.axis */            \
    X(SLICE, "slice")         /* x → y: attr.count places of attr.axis from attr.offset (0: the rest) */           \
    X(SLICE_BWD, "slice_bwd") /* dy → dx, zeros elsewhere */                                                       \
    X(STACK, "stack")         /* x → y: attr.count copies of x along a new axis attr.axis */                       \
    X(REDUCE,                                                                                                        \
      "reduce") /* x, [t] → y: sum (flag MEAN: mean) of x, or x*t, over attr.count axes from attr.axis */          \
    X(REDUCE_BWD, "reduce_bwd")              /* dy → dx: every element back to those it came from */               \
    X(ZERO_PAD, "zero_pad")                  /* x[N,H,W,C] → y, zeros around the image: attr.pad_* */              \
    X(ZERO_PAD_BWD, "zero_pad_bwd")          /* dy → dx */                                                         \
    X(UPSAMPLE, "upsample")                  /* x[N,H,W,C] → y: every pixel kernel_h x kernel_w times */           \
    X(UPSAMPLE_BWD, "upsample_bwd")          /* dy → dx */                                                         \
    X(SOFTMAX_XENT, "softmax_cross_entropy") /* logits[...,K], labels[...] i32 or u8 → probs, loss[1]: the \
                                     mean over all R rows; attr.scale = its weight in the step */       \
    X(SOFTMAX_XENT_BWD,                                                                                              \
      "softmax_cross_entropy_bwd") /* probs, labels, [scale[1]] → dlogits = weight*scale*(p − onehot)/R */       \
    X(SOFTMAX_XENT_STREAM,                                                                                           \
      "softmax_cross_entropy_streaming") /* logits[...,K], labels[...] → max[...], rsum[...], loss[1]: the \
                                     same loss; of a row its largest logit and 1 / Σ exp(z − max), which stand \
                                     for its probabilities */       \
    X(SOFTMAX_XENT_STREAM_BWD,                                                                                       \
      "softmax_cross_entropy_streaming_bwd") /* logits, labels, max, rsum, [scale[1]] → dlogits as above, p = \
                                     exp(z − max) * rsum */    \
    X(SOFTMAX_XENT_GRADIENT, /* logits, labels, [scale[1]] → dlogits, loss[1]: STREAM and its gradient */          \
      "softmax_cross_entropy_with_gradient")                                                                         \
    X(MSE, "mse")          /* prediction, target → loss[1]: the mean over elements; attr.scale */                  \
    X(MSE_BWD, "mse_bwd")  /* prediction, target, [scale[1]] → dprediction */                                      \
    X(KL, "kl_divergence") /* student[...,K], teacher[...,K] → probs of student/T, loss[1] = T² * mean  \
                                     over rows of KL(softmax(teacher/T) || probs); T = attr.epsilon */         \
    X(KL_BWD, "kl_divergence_bwd")         /* probs, teacher, [scale[1]] → dstudent */                             \
    X(BINARY_XENT, "binary_cross_entropy") /* logits, target → loss[1]: the mean over elements of \
                                     −t log p − (1−t) log(1−p), p = sigmoid(logit); targets in [0, 1] */                \
    X(BINARY_XENT_BWD, "binary_cross_entropy_bwd") /* logits, target, [scale[1]] → dlogits */                      \
    X(FOCAL,                                                                                                         \
      "focal") /* as BINARY_XENT, every element times (1 − p_t)^attr.rate, p_t = pt + (1−p)(1−t), and,  \
                                     with attr.momentum = a not 0, at + (1−a)(1−t) (Lin et al. 2017) */      \
    X(FOCAL_BWD, "focal_bwd") /* logits, target, [scale[1]] → dlogits */                                           \
    X(ACCURACY, "accuracy") /* logits[...,K], labels[...] → correct[1] i32: rows whose arg max (first of   \
                                     ties) is the label */       \
    X(MATMUL, "matmul") /* a[...,M,K], b[...,K,N] → y[...,M,N] = attr.scale * a·b; TRANSPOSE: b[...,N,K] */       \
    X(MATMUL_BWD_A, "matmul_bwd_a") /* dy, b → da */                                                               \
    X(MATMUL_BWD_B, "matmul_bwd_b") /* a, dy → db */                                                               \
    X(SOFTMAX, "softmax")           /* x → y over the last dimension; CAUSAL: x[...,Lq,Lk] */                      \
    X(SOFTMAX_BWD, "softmax_bwd")   /* y, dy → dx */                                                               \
    X(ATTENTION_SCORES,                                                                                              \
      "attention_scores") /* q[N,Lq,D], k[N,Lk,D] → s[N,heads,Lq,Lk] = attr.scale*q·kᵀ, see ops/attention.h */  \
    X(ATTENTION_SCORES_BWD_Q, "attention_scores_bwd_q") /* ds, k → dq */                                           \
    X(ATTENTION_SCORES_BWD_K, "attention_scores_bwd_k") /* q, ds → dk */                                           \
    X(ATTENTION_VALUES, "attention_values")             /* p[N,heads,Lq,Lk], v[N,Lk,D] → y[N,Lq,D] */              \
    X(ATTENTION_VALUES_BWD_P, "attention_values_bwd_p") /* dy, v → dp */                                           \
    X(ATTENTION_VALUES_BWD_V, "attention_values_bwd_v") /* p, dy → dv */                                           \
    X(ATTENTION, "attention") /* q, k, v, or qkv[N,L,3D] → y, lse[N,heads,Lq]; attr.heads, CAUSAL; never   \
                                     holds Lq x Lk; see ops/attention.h */       \
    X(ATTENTION_BWD, "attention_bwd") /* q, k, v, or qkv, then y, dy, lse → dq, dk, dv, or dqkv */                 \
    X(CAST, "cast") /* x → y: another real type; to the nearest, ties to even, too large to infinity */            \
    X(FINITE,                                                                                                        \
      "finite") /* g, [=finite[1] i32, =health[rows,3]] → finite &= every g is; health row attr.slot = \
                             flushed (0 < |g| < 6e-8), overflowing (> 65504 or not finite), elements; without      \
                             the optional operands both begin here */           \
    X(UNSCALE, "unscale") /* =g, [scale[1]]: g /= attr.scale*scale */                                                \
    X(SCALE_UPDATE,                                                                                                  \
      "scale_update") /* =scale[1], =clean[1] i32, finite: Keras' loss scale; attr.count = clean   \
                             steps after which it doubles, attr.epsilon = floor (0: none) */                 \
    X(RMSPROP, "rmsprop") /* =w, g, =v: Keras: v = b1*v + (1−b1)g²; w −= lr*g/sqrt(v + eps). Every update: \
                                     w −= lr*attr.rate*w first; may end in finite[1] i32, 0: nothing changes */    \
    X(LION, "lion")       /* =w, g, =m: w −= lr*sign(b1*m + (1−b1)g); m = b2*m + (1−b2)g */                    \
    X(ADAFACTOR, "adafactor") /* matrix =w, g, =r[rows], =c[columns]; vector =w, g, =v: Keras' formulas,   \
                                     the last two dimensions are the matrix */         \
    X(ADAFACTOR_KERAS, "adafactor_keras") /* =w, g, =r, =c, =v: the same, and v in full as Keras holds it */         \
    X(ADAM8BIT, "adam8bit")     /* =w, g, =m u8, =v u8, =scales f32[2, blocks of 256]: see base/code8.h */           \
    X(SQUARE_SUM, "square_sum") /* g, [=sum[1]]: sum += Σg², or begins with it */                                  \
    X(CLIP, "clip")             /* g, sum[1] → g*min(1, eps/(sqrt(sum) + 1e-6)), eps the largest norm */           \
    X(EMA, "ema")               /* =e, w: e = m*e + (1−m)w, e = w at the first update */                           \
    X(ACCUMULATE, "accumulate") /* =sum, g: sum += g */                                                              \
    X(LSTM, "lstm") /* g[N,T,4H] = x·Wx + b, wh[H,4H] → h[N,T,H], c[N,T,H], a[N,T,4H]: gates i, f, c, o as \
                                     Keras, a the gates behind their activation; the first state is zero */      \
    X(GRU,                                                                                                           \
      "gru") /* g[N,T,3H] = x·Wx + b, wh[H,3H], bh[3H] → h[N,T,H], a[N,T,4H]: gates z, r, n as Keras with \
                                     reset_after, behind their activation, then h(t−1)·Wh + bh of n; h(0) = 0 */       \
    X(GRU_BWD, "gru_bwd")   /* wh, h, a, dh → dg, dwh, dbh */                                                      \
    X(LSTM_BWD, "lstm_bwd") /* wh, h, c, a, dh → dg, dwh */                                                        \
    X(SGD, "sgd")           /* =w, g: w −= lr*g */                                                                 \
    X(MOMENTUM, "momentum") /* =w, g, =v: v = m*v − lr*g; w += v (Keras) */                                        \
    X(ADAM, "adam")         /* =w, g, =m, =v: Keras: lr_t = lr*sqrt(1−b2^t)/(1−b1^t);                  \
                                     m += (g−m)(1−b1); v += (g²−v)(1−b2); w −= lr_t*m/(sqrt(v)+eps) */         \
    X(LAYER_NORM, "layer_norm") /* x[...,C], gamma[C], beta[C] → y, mean[...], rstd[...]; attr.epsilon */          \
    X(LAYER_NORM_BWD, "layer_norm_bwd") /* x, dy, gamma, mean, rstd, [added to dx] → dx, dgamma, dbeta */          \
    X(RMS_NORM, "rms_norm")             /* x[...,C], gamma[C] → y, rstd[...]; attr.epsilon */                      \
    X(RMS_NORM_BWD, "rms_norm_bwd")     /* x, dy, gamma, rstd, [added to dx] → dx, dgamma */                       \
    X(GELU, "gelu")                     /* x → y; x*Phi(x), flag TANH: its tanh form */                            \
    X(GELU_BWD, "gelu_bwd")             /* x, dy → dx */                                                           \
    X(SILU, "silu")                     /* x → y = x*sigmoid(x) */                                                 \
    X(SILU_BWD, "silu_bwd")             /* x, dy → dx */                                                           \
    X(TANH, "tanh")                     /* x → y */                                                                \
    X(TANH_BWD, "tanh_bwd")             /* y, dy → dx */                                                           \
    X(SIGMOID, "sigmoid")               /* x → y */                                                                \
    X(SIGMOID_BWD, "sigmoid_bwd")       /* y, dy → dx */                                                           \
    X(EMBEDDING, "embedding")           /* ids[...] i32, table[V,D] → y[...,D] */                                  \
    X(EMBEDDING_BWD, "embedding_bwd")   /* ids, dy → dtable[V,D] */                                                \
    X(ADD_BROADCAST, "add_broadcast")   /* a[...], b[last dimensions of a] → y */                                  \
    X(BROADCAST, "broadcast")           /* b[...] → y[N,...]: b for every sample */                                \
    X(DROPOUT, "dropout")               /* x → y, [mask u8]; attr.rate, attr.salt; see ops/dropout.h */            \
    X(DROPOUT_BWD, "dropout_bwd")       /* dy → dx, the mask drawn again */                                        \
    X(DROPOUT_BWD_MASK, "dropout_bwd_mask") /* mask, dy → dx */                                                    \
    X(PREFETCH,                                                                                                      \
      "prefetch") /* → slot: the host batch of a later round; lane h2d, nobody waits for it here */                \
    X(ADVANCE, "advance") /* t → t': a batch moves up on the device; t' may have fewer samples than t */           \
    X(NORMALISE, "normalise")   /* x u8 → y = x / 255, of a real type */                                           \
    X(ROTARY, "rotary")         /* x[N,L,D] → y: features turned by their place; attr.heads, attr.base */          \
    X(ROTARY_BWD, "rotary_bwd") /* dy → dx: turned back */                                                         \
    X(MULTIPLY_BROADCAST, "multiply_broadcast") /* a[...,C], b[C], [N,C] or [N,1,..,C] → y = a*b */                \
    X(HARD_SIGMOID, "hard_sigmoid")             /* x → y = min(max(x/6 + 1/2, 0), 1) */                            \
    X(HARD_SIGMOID_BWD, "hard_sigmoid_bwd")     /* y, dy → dx */                                                   \
    X(HARD_SWISH, "hard_swish")                 /* x → y = x*hard_sigmoid(x) */                                    \
    X(HARD_SWISH_BWD, "hard_swish_bwd")         /* x, dy → dx */                                                   \
    X(LEAKY_RELU, "leaky_relu")                 /* x → y = x > 0 ? x : attr.rate*x; rate >= 0 */                   \
    X(LEAKY_RELU_BWD, "leaky_relu_bwd")         /* y, dy → dx */                                                   \
    X(SOFTPLUS, "softplus")                     /* x → y = ln(1 + e^x) */                                          \
    X(SOFTPLUS_BWD, "softplus_bwd")             /* x, dy → dx */                                                   \
    X(MISH, "mish")                             /* x → y = x*tanh(softplus(x)) */                                  \
    X(MISH_BWD, "mish_bwd")                     /* x, dy → dx */                                                   \
    X(RELATIVE_BIAS,                                                                                                 \
      "relative_bias") /* table[V,heads] → bias[P*heads,Lq,Lk]: what every score of a query and a key is \
                                     given by where they stand to one another; attr.rule, see ops/relative.h */         \
    X(RELATIVE_BIAS_BWD, "relative_bias_bwd") /* dbias → dtable */                                                 \
    X(GROUP_NORM,                                                                                                    \
      "group_norm") /* x[N,...,C], gamma[C], beta[C] → y, mean[N,groups], rstd[N,groups];        \
                                     attr.groups, attr.epsilon */                 \
    X(GROUP_NORM_BWD, "group_norm_bwd") /* x, dy, gamma, mean, rstd → dx, dgamma, dbeta */                         \
    X(ROUTE, "route")         /* logits[N,T,E] → gates[N,T,k], slots[N,T,k] i32; see ops/experts.h */              \
    X(ROUTE_BWD, "route_bwd") /* logits, slots, dgates → dlogits */                                                \
    X(BALANCE,                                                                                                       \
      "load_balance") /* logits, slots → loss[1]: the mean over samples of E * Σ over experts of   \
                                     choices/T * mean probability; attr.scale = its weight in the step */              \
    X(BALANCE_BWD, "load_balance_bwd") /* logits, slots, [scale[1]] → dlogits */                                   \
    X(DISPATCH, "dispatch")            /* x[N,T,D], slots → y[N,C,E,D], zeros in slots that nobody has */          \
    X(DISPATCH_BWD, "dispatch_bwd")    /* dy, slots → dx */                                                        \
    X(GATHER, "gather_experts") /* y[N,C,E,D], gates, slots → z[N,T,D]: Σ of gate * what its slot has */          \
    X(GATHER_BWD, "gather_experts_bwd") /* y, gates, slots, dz → dy, dgates */                                     \
    X(EXPERT_DENSE, "expert_dense")     /* x[N,C,E,I], w[E,I,O] → y[N,C,E,O]: each expert's own weights */         \
    X(EXPERT_DENSE_BWD_DATA, "expert_dense_bwd_data")       /* dy, w → dx */                                       \
    X(EXPERT_DENSE_BWD_WEIGHTS, "expert_dense_bwd_weights") /* x, dy → dw */                                       \
    X(PERMUTE,                                                                                                       \
      "permute")    /* x → y: its axes in another order, the first stays; attr.rule, see ops/permute.h */          \
    X(ROLL, "roll") /* x[N,H,W,...] → y: place h, w of y is (h + attr.pad_top) mod H, (w + attr.pad_left) \
                                     mod W of x */        \
    X(RESIZE,                                                                                                        \
      "resize") /* x[N,H,W,C] → y[N,kernel_h,kernel_w,C]: bilinear, half pixels or flag CORNERS; see \
                                     ops/resize.h */             \
    X(RESIZE_BWD, "resize_bwd") /* dy → dx */                                                                      \
    X(ADAPTIVE_POOL,                                                                                                 \
      "adaptive_avg_pool") /* x[N,H,W,C] → y[N,kernel_h,kernel_w,C]: means over windows of about \
                                     one size that cover x; see ops/adaptive.h */                 \
    X(ADAPTIVE_POOL_BWD, "adaptive_avg_pool_bwd") /* dy → dx */                                                    \
    X(DROP_PATH,                                                                                                     \
      "drop_path") /* x[N,...] → y, factors[N]: x times 0 or 1 / (1 - attr.rate), drawn for each    \
                                     sample as a DROPOUT's first element is; attr.salt */              \
    X(DROP_PATH_BWD, "drop_path_bwd") /* factors, dy → dx */                                                       \
    X(OPAQUE,                                                                                                        \
      "opaque") /* 1..6 inputs → y[N,...]: nobody knows what; attr.count dimensions, behind the batch kernel_h, \
                                     kernel_w, stride_h, stride_w */  \
    X(OPAQUE_BWD, "opaque_bwd") /* all inputs, y, dy → the gradient of one input */                                \
    X(PRUNE,                                                                                                         \
      "prune") /* =w, =mask, [finite[1] i32, 0: nothing changes]: w = 0 where mask is; on the updates of \
                             its schedule mask is made of w before, 1 for what stays; see ops/prune.h */           \
    X(FAKE_QUANT_WEIGHTS,                                                                                            \
      "fake_quant_weights") /* w → y: w at 255 levels, of all of it or, with attr.count 1, of each place of the  \
                                     last dimension; see ops/fake_quant.h */ \
    X(FAKE_QUANT, "fake_quant")         /* x, range[2] → y: x at 256 levels */                                     \
    X(FAKE_QUANT_BWD, "fake_quant_bwd") /* x, range, dy → dx */                                                    \
    X(TRACK_RANGE,                                                                                                   \
      "track_range") /* x, =range[2]: a moving average of its smallest and largest, attr.momentum its decay, 0: \
                                     of all that there were */    \
    X(QUANTIZE_INT8,                                                                                                 \
      "quantize_int8") /* w[I,O] → q[I,O] i8, scale[O]; base/quantize.h; flag TRANSPOSE: of a table, scale[I] */   \
    X(QUANTIZE_INT4,                                                                                                 \
      "quantize_int4") /* w[I,O] → q[I,O/2] u8, scale[G,O], zero[G,O] i8; flag TRANSPOSE: scale[I,G], zero[I,G] */ \
    X(DENSE_INT8,                                                                                                    \
      "dense_int8") /* x[...,I], q, scale, [b[O]] → y[...,O]: rows of x as int8, too; attr.act; \
                                     flag TRANSPOSE, here and below: q[O,I] of a table */                  \
    X(DENSE_INT8_WEIGHTS, "dense_int8_weights") /* x, q, scale, [b] → y */                                         \
    X(DENSE_INT4_WEIGHTS, "dense_int4_weights") /* x, q, scale, zero, [b] → y */                                   \
    X(DEQUANTIZE,                                                                                                    \
      "dequantize") /* q, scale, [zero] → w: frozen weights as real numbers; attr.rule; ops/held.h */              \
    X(PRUNE_CHANNELS,                                                                                                \
      "prune_channels") /* =w, mask of a kernel: w = 0 at what is of filters that it has at 0; \
                                     see ops/prune.h */                     \
    X(EMBEDDING_INT8, "embedding_int8") /* ids, q, scale[V] → y: EMBEDDING, of rows as whole numbers */            \
    X(EMBEDDING_INT4, "embedding_int4") /* ids, q, scale[V,G], zero → y */

typedef enum hr_op {
#define X(id, text) HR_OP_##id,
    HR_OP_MAP(X)
#undef X
        HR_OP_COUNT
} hr_op;

typedef enum hr_dtype { HR_F32, HR_F64, HR_F16, HR_BF16, HR_I32, HR_U8, HR_I8, HR_DTYPE_COUNT } hr_dtype;

// PLAIN is row-major in the order of the shape. PADDED is PLAIN with rows, of the last dimension, that begin at multiples of OP_PAD_ELEMENTS;
// what lies between them is nothing anybody may read a number of. LIBRARY is opaque: only bytes are known here.
typedef enum hr_layout { HR_LAYOUT_PLAIN, HR_LAYOUT_PADDED, HR_LAYOUT_LIBRARY } hr_layout;

typedef enum hr_act { HR_ACT_NONE, HR_ACT_RELU, HR_ACT_RELU6, HR_ACT_GELU, HR_ACT_COUNT } hr_act;

enum { OP_MAX_RANK = 5, OP_MAX_IN = 10, OP_MAX_OUT = 4, OP_MAX_GRADS = 6, OP_PAD_ELEMENTS = 64 };

typedef struct hr_shape {
    uint32_t rank;
    uint32_t reserved;
    int64_t dim[OP_MAX_RANK]; // zero beyond rank
} hr_shape;

// Attributes of every operation, flat so that they can be hashed and compared with memcmp (zero-initialise).
typedef struct op_attr {
    int32_t kernel_h, kernel_w, stride_h, stride_w;
    int32_t pad_top, pad_left, pad_bottom, pad_right;
    int32_t gap_h, gap_w;  // CONV2D and its gradients: pixels left out between two taps, dilation - 1
    int32_t groups;        // convolution; 1 = dense
    int32_t act;           // hr_act fused behind the operation
    int32_t slot;          // INPUT, PREFETCH: the model's slot; READ: read_slot; RECORD, WAIT: the event
    uint32_t peer;         // REORDER: id of the instruction it serves
    uint32_t peer_operand; // REORDER: operand of the peer; 0x80 | k for output k
    int32_t axis, offset;  // CONCAT, SLICE, STACK, REDUCE: the axis; where a slice begins on it
    int32_t count;         // REPEAT: rounds; STACK: copies; REDUCE: axes from `axis` on; SLICE: extent;
                           // EMBEDDING_INT4: places of a row; else 0
    int32_t heads; // ATTENTION…; of a tile of it `offset` is its first head, `count` the heads of a sample
    int32_t flags; // OP_FLAG_…
    int32_t rule;  // RELATIVE_BIAS: op_relative_rule; PERMUTE: the order of axes; DEQUANTIZE: held_as
    int32_t experts, choices, slots; // ROUTE, DISPATCH: experts, those of a token, slots of an expert
    uint64_t salt;                   // DROPOUT, DROP_PATH, ATTENTION with a rate: of the layer's name
    double epsilon, momentum;        // normalisations, MOMENTUM, EMA; FOCAL: the weight of what is there
    double beta1, beta2;             // ADAM and its kin
    double scale; // a factor; 0 stands for 1, of attention's scores for 1/sqrt(D/heads). Losses: their weight
    double rate;  // DROPOUT, DROP_PATH, ATTENTION: share that is dropped; LEAKY_RELU: slope; FOCAL: exponent;
                  // update rules: weight decay
    double base;  // ROTARY: of its wave lengths; RELATIVE_BIAS: the distance from which on all are alike
} op_attr;

enum {
    OP_FLAG_CAUSAL = 1,    // SOFTMAX, ATTENTION: position i sees 0..i only
    OP_FLAG_TRANSPOSE = 2, // DENSE…: weights are stored [O, I]; MATMUL: b is; QUANTIZE…: rows are measured
    OP_FLAG_TANH = 4,      // GELU: the tanh form
    OP_FLAG_MEAN = 8,      // REDUCE: divide by the number of elements
    OP_FLAG_PADDING = 16, // AVG_POOL: padding counts as zeros (PyTorch); without it, it does not (TensorFlow)
    OP_FLAG_TORCH = 32,   // ADAM, ADAM8BIT: PyTorch's form, epsilon inside of the bias correction; ops/adam.h
    OP_FLAG_ADDED = 64,   // DENSE, DENSE_BWD_DATA: the last input is added to the result; no act with it
    OP_FLAG_IN_PLACE = 128, // over the input that in_place names under execution.as=pytorch
    OP_FLAG_SHARES = 256,   // ROUTE: a token's gates sum to 1
    OP_FLAG_CORNERS = 4096, // RESIZE: the centres of the corners lie on one another
    // execution.as=pytorch:
    OP_FLAG_PACKED =
        512, // ATTENTION, DENSE in front of it: an nn.MultiheadAttention, which makes one product and copies
    OP_FLAG_PROMOTED = 1024, // CAST: the reader takes what is cast as it is
    OP_FLAG_JOINED =
        4096, // of a packed attention: DENSE, one of three products that are one there; ATTENTION, of their results;
              // PERMUTE, a copy in the order that there is
    OP_FLAG_TURNED = 8192, // LAYER_NORM, a DENSE that is JOINED: places come before samples in its input
    OP_FLAG_TURNED_BACK = 16384, // LAYER_NORM, DENSE, ATTENTION: and in its result's gradient
    OP_FLAG_MASKED = 32768, // updates: a mask is behind the slots; the PRUNE behind such a one: ops/prune.h
    OP_FLAG_LOGITS = 2048,  // CAST, SOFTMAX_XENT: of logits, whose log-softmax has their own type
};

// What READ brings to the host.
typedef enum read_slot { READ_LOSS, READ_CORRECT, READ_FINITE, READ_HEALTH } read_slot;

// attr.rule of READ_LOSS: whose loss it is.
typedef enum read_rule { READ_OF_LAYER, READ_OF_LABELS, READ_OF_TEACHER } read_rule;

typedef struct op_operand {
    hr_shape shape;
    uint32_t dtype;  // hr_dtype
    uint32_t layout; // hr_layout
} op_operand;

// One operation with everything that its cost, support and workspace depend on. Flat; zero-initialise.
typedef struct op_query {
    uint32_t op; // hr_op
    uint16_t in_count, out_count;
    op_attr attr;
    op_operand in[OP_MAX_IN], out[OP_MAX_OUT];
} op_query;

typedef enum op_source { OP_SRC_IN, OP_SRC_OUT, OP_SRC_GRAD } op_source; // of the forward instruction

typedef struct op_grad_operand {
    uint8_t source; // op_source
    uint8_t index;
} op_grad_operand;

// One backward instruction: it is emitted when any input named in `result` needs a gradient.
typedef struct op_grad {
    hr_op op;
    uint8_t when_outputs; // only when the forward instruction has this many outputs; 0: always
    uint8_t operand_count, result_count;
    op_grad_operand operand[OP_MAX_IN]; // an optional input that is not there is left out
    uint8_t result[OP_MAX_OUT];         // forward input whose gradient this output is
    // Optional: *attr, a copy of the forward instruction's, becomes that of the backward one.
    void (*attr)(const op_query *forward, op_attr *attr);
} op_grad;

// Operations that run at like rates. X(ID, "name")
#define COST_FAMILY_MAP(X)                                                                                   \
    X(NOTHING, "nothing")                                                                                    \
    X(PRODUCT, "product")                                                                                    \
    X(CONV, "conv forward")                                                                                  \
    X(CONV_DATA, "conv bwd data")                                                                            \
    X(CONV_WEIGHTS, "conv bwd weights")                                                                      \
    X(DEPTHWISE, "depthwise")                                                                                \
    X(ATTENTION, "attention")                                                                                \
    X(NORM, "normalisation")                                                                                 \
    X(ELEMENTWISE, "element-wise")                                                                           \
    X(REDUCTION, "reduction")                                                                                \
    X(EMBEDDING, "embedding")                                                                                \
    X(UPDATE, "update")                                                                                      \
    X(COPY, "copy")

typedef enum cost_family {
#define X(id, text) COST_##id,
    COST_FAMILY_MAP(X)
#undef X
        COST_FAMILY_COUNT
} cost_family;

// May checkpointing make it again? CHEAP against what it reads: one pass over memory, or a product that is small beside
// its result. COSTLY: no, or it is no part of the forward pass.
typedef enum op_recompute { OP_RECOMPUTE_UNSAID, OP_CHEAP, OP_COSTLY } op_recompute;

// ACTS: the kernel that writes the result may apply ReLU or ReLU6 to it (attr.act).
typedef enum op_acts { OP_ACTS_UNSAID, OP_NO_ACT, OP_ACTS } op_acts;

// Into what parts it may be cut that need nothing of one another.
typedef enum op_tiling {
    OP_TILING_UNSAID,
    OP_WHOLE,      // it is not cut
    OP_BY_ELEMENT, // anywhere
    OP_BY_ROW,     // of the last dimension
    OP_BY_PERIOD,  // an input is repeated along the result
    OP_BY_HEAD,    // of a sample
    OP_BY_IMAGE    // by images, or by rows of one
} op_tiling;

enum { OP_TILE_OUT_0 = 0x10 };

// What passes, devices and the cost model ask of every operation. A row without a kernel leaves the cost at NOTHING; all
// else at 0 is a row that forgot to say, which tests/program/test_op_traits.c finds.
typedef struct op_traits {
    uint8_t cost, recompute, acts, tiling;
    // Of what is cut: bit k of `whole`: input k is seen by every part; of `sum`: output k is a sum over parts; of
    // `repeated`: input k is repeated; of `large`: operand k, outputs behind inputs from OP_TILE_OUT_0 on, is an image
    // that windows look at.
    uint8_t whole, sum, repeated, large;
} op_traits;

typedef struct op_row {
    const char *name;
    op_traits traits;
    uint8_t min_in, max_in, min_out, max_out;
    // Fills shape and dtype of every output from the inputs; NULL for backward, update and movement rows, whose
    // outputs have the shape of what they are the gradient or copy of. MODEL errors name what does not match.
    hr_status (*shape)(const op_attr *attr, const op_operand *in, size_t in_count, op_operand *out,
                       size_t out_count, hr_err *err);
    uint64_t (*flops)(const op_query *q); // NULL: one per output element
    uint64_t (*bytes)(const op_query *q); // moved; NULL: every operand once
    int8_t in_place;                      // result in_place_out may lie on this input; -1 none
    bool view;                            // output 0 is the storage of input 0
    bool control;                         // the executor does it: no device sees it, it costs nothing
    bool crosses_link;                    // a copy between host and device: its bytes count once
    bool orders;                          // moves nothing: it says which lane waits for which
    uint8_t passes_gradient;              // bit k: the gradient of input k is the gradient of output 0 itself
    uint8_t keep_in, keep_out; // bit k: the eager tape keeps input / output k (reference tensorflow.md D3)
    // Bit k: input / output k is float32 (float64 under that policy) whatever the activations are: losses, statistics,
    // what normalises. passes/precision.c puts a cast where a value has another type.
    uint16_t wide_in;
    uint8_t wide_out;
    uint8_t state_out; // bit k: output k is what backward needs to know (statistics, a mask), no activation
    uint8_t updates;   // bit k: input k is updated: the outputs are these inputs, in their order
    bool moves_state;  // it changes what stays among its inputs, which are no outputs: running statistics
    bool
        keeps_channels; // a place of the last dimension of output 0 comes of that place of input 0 alone, and is 0 where that is
    uint8_t in_place_out; // which output in_place speaks of
    uint8_t grad_count;
    op_grad grad[OP_MAX_GRADS];
} op_row;

const op_row *op_row_of(hr_op op); // never NULL
const char *op_name(hr_op op);
bool op_needs_kernel(hr_op op); // neither control nor a view

uint64_t dtype_bytes(hr_dtype dtype);
const char *dtype_name(hr_dtype dtype); // "float32"
bool dtype_is_real(hr_dtype dtype);     // any float type
const char *layout_name(hr_layout layout);

hr_shape shape_of(uint32_t rank, const int64_t *dim);
bool shape_equal(const hr_shape *a, const hr_shape *b);
// Product of the dimensions; false on overflow or a dimension below 1.
bool shape_elements(const hr_shape *shape, uint64_t *elements);
// Bytes of a PLAIN or PADDED tensor; *padding_bytes is what the layout adds. False on overflow.
bool operand_bytes(const op_operand *t, uint64_t *bytes, uint64_t *padding_bytes);
// What the last dimension is in memory, with what pads it: of a PLAIN or PADDED tensor the elements from row to row.
int64_t operand_pitch(const op_operand *t);
// Pixels from the first of `kernel` taps to the last, both counted, with `gap` left out between two.
int64_t op_reach(int32_t kernel, int32_t gap);
// "128x30x30x32". Returns text.
const char *shape_text(const hr_shape *shape, char *text, size_t size);

// Mixes everything that cost, support and workspace of q depend on into key.
void op_query_hash(const op_query *q, uint64_t key[2]);

uint64_t op_flops(const op_query *q);
uint64_t op_bytes_moved(const op_query *q);

#endif
