// SPDX-License-Identifier: Apache-2.0
// The rows of the knob table, in the order of HR_KNOB_MAP. A row is all that YAML, --set, help, widgets and
// completion know of a setting; a new setting is one line in HR_KNOB_MAP and one row here.
#include <string.h>
#include <strings.h>

#include "headroom/knobs.h"

#include "base/text.h"

// The largest integer below which a double holds every integer: ranges are doubles.
#define EXACT_INT_MAX 9007199254740991.0
#define BYTES_MAX     1125899906842624.0 // 1 PiB
// The longest side of a shape that a model's file may name.
#define MODEL_SIDE_MAX 16777216.0

#define X(id, key) static const char key_##id[] = key;
HR_KNOB_MAP(X)
#undef X

// clang-format off
#define OFF_ON {"off", "on"}
#define ROW(name, kind, value, of)                                                              \
    [HR_KNOB_##name] = {.id = HR_KNOB_##name, .key = key_##name, .type = HR_KNOB_##kind,        \
                        .preset_default = value, .unit = of,
static const hr_knob_row rows[] = {
    ROW(DEVICE_KIND, CHOICE, "cpu", "")
        .choices = {"cpu", "cuda", "plan", "reference"},
        .line = "what runs the step program",
        .explanation =
            "cpu computes through oneDNN under the memory limit of a virtual card. cuda computes on an NVIDIA card "
            "through cuDNN, cuBLASLt and kernels of our own; a plan for it needs no card: cuDNN answers for the card "
            "that device.card names. plan computes nothing: "
            "it plays the same allocations against the same allocator, with workspaces estimated from the "
            "card alone, so it gives the same bytes on every machine. reference computes in plain C, "
            "slowly; it knows float64 and judges the others."},
    ROW(DEVICE_CARD, TEXT, "", "")
        .line = "the card whose memory and speed the device takes on",
        .explanation =
            "A name from `headroom cards`, a file as `headroom cards NAME` prints one (./mine.yaml), or one of these and "
            "what differs: rtx3070-8g,vram=12GiB. In a preset also {like: rtx3070-8g, vram: 12GiB}. The card's memory less its context, less what TensorFlow "
            "leaves to the system (with allocator.kind caching nothing, as PyTorch), is the limit of the allocator; its bandwidth and FLOP/s give the "
            "simulated time of the plan device. \"\" is no card: then device.vram says the limit. Where neither does, the plan device "
            "takes the card `unlimited` (no limit, the times of an A100; a bfc pool then grows as it is needed), "
            "the cpu device 80 % of this machine's memory."},
    ROW(DEVICE_VRAM, BYTES, "", "B")
        .min = 256, .max = BYTES_MAX,
        .line = "the allocator's limit itself, whatever the card has",
        .explanation =
            "The same as memory_limit of a TensorFlow logical device: the pool never grows beyond it. "
            "Without it the card and TensorFlow's formula decide. With a card it must not exceed the "
            "card."},
    ROW(DEVICE_LOGICAL, TEXT, "none", "")
        .line = "sizes of logical devices that share the card; the step has the first",
        .explanation =
            "TensorFlow's logical devices, 2GiB,4GiB for instance: each has a best-fit allocator of its own, "
            "GPU_0_bfc and so on, and what is free in one serves no other. The first size is the limit of the "
            "step's allocator. Together they must not exceed device.vram or, without it, what the card has "
            "beside its context. none: the card is one device.",
        .allocator = "bfc",
        .applies = "with allocator.kind bfc, and allocator.growth off",
        .needs = {{"bfc", HR_KNOB_ALLOCATOR_KIND}, {"off", HR_KNOB_ALLOCATOR_GROWTH}}},
    ROW(ALLOCATOR_KIND, CHOICE, "bfc", "")
        .choices = {"bfc", "caching", "async", "direct", "static", "async_driver"},
        .line = "how device memory is handed out",
        .explanation =
            "bfc is TensorFlow's best-fit with coalescing, decision for decision: requests rounded to 256 "
            "bytes, 21 bins, chunks split and joined inside regions. caching is PyTorch's, decision for decision: "
            "blocks of 512 bytes and more in segments of 2 and 20 MiB that are kept when they are free, and given "
            "back when the card is full; each stream has blocks of its own. async is a stream-ordered pool as "
            "cudaMallocAsync's: pieces of 2 MiB are mapped as they are needed and unmapped after a step, so "
            "that no region's end parts what is free. direct takes every tensor from the driver and gives it "
            "back, in whole granules (2 MiB on a card). static knows the whole step: every "
            "tensor's place in one block is decided before the run, largest tensors first, and the pool "
            "is exactly as high as that. It wants execution.mode graph. async_driver is the pool of the card's own "
            "driver, behind cudaMallocAsync: where it places tensors and how much it holds is NVIDIA's secret, so a run "
            "measures it and a plan estimates it with async. It alone stands outside the promise that a plan is the run, "
            "and only device.kind cuda has it."},
    ROW(ALLOCATOR_GROWTH, CHOICE, "off", "")
        .choices = OFF_ON,
        .line = "take memory in growing regions instead of all at once",
        .explanation =
            "off takes the whole limit as one region at the first request, as TensorFlow does by default. "
            "on starts with 2 MiB and doubles (set_memory_growth): the pool becomes a staircase, what the "
            "model needs stays the same, and regions that cannot be joined may fragment.",
        .allocator = "bfc",
        .applies = "with allocator.kind bfc",
        .needs = {{"bfc", HR_KNOB_ALLOCATOR_KIND}}},
    ROW(ALLOCATOR_FRACTION, REAL, "", "of the card")
        .steps = {"none", "0.5", "0.6", "0.7", "0.8", "0.9", "1"},
        .min = 0, .max = 1,
        .line = "share of the card's whole memory that the allocator may take",
        .explanation =
            "TensorFlow's per_process_gpu_memory_fraction: the limit is this share of the card's memory, "
            "with nothing kept back for the system; PyTorch's per_process_memory_fraction. 0 is the same as none: "
            "TensorFlow's formula.",
        .applies = "with device.card and without device.vram"},
    ROW(ALLOCATOR_GARBAGE_COLLECTION, CHOICE, "on", "")
        .choices = OFF_ON,
        .line = "give wholly free regions back before running out of memory",
        .explanation =
            "Before a request fails, regions with nothing in use go back to the driver and a larger one "
            "is taken in their place (TF_ENABLE_GPU_GARBAGE_COLLECTION).",
        .allocator = "bfc",
        .applies = "with allocator.kind bfc and allocator.growth on: otherwise there is one region only",
        .needs = {{"bfc", HR_KNOB_ALLOCATOR_KIND}, {"on", HR_KNOB_ALLOCATOR_GROWTH}}},
    ROW(ALLOCATOR_RELEASE_THRESHOLD, BYTES, "", "B")
        .min = 0, .max = BYTES_MAX,
        .line = "bytes that the pool keeps when a step ends; the rest is given back",
        .explanation =
            "CU_MEMPOOL_ATTR_RELEASE_THRESHOLD: when a step ends and more than this is mapped, pieces with nothing in "
            "use are unmapped until no more is. 0B gives everything back, as a CUDA program that sets nothing; none "
            "keeps it all, as TensorFlow and PyTorch do. What others on the card may have between two steps changes, "
            "the peak hardly; mapping again takes time.",
        .allocator = "async",
        .applies = "with allocator.kind async and async_driver",
        .needs = {{"async async_driver", HR_KNOB_ALLOCATOR_KIND}}},
    ROW(ALLOCATOR_MAX_SPLIT, BYTES, "", "B")
        .min = 11534336, .max = BYTES_MAX,
        .line = "blocks from this size on are never split, and kept for requests as large",
        .explanation =
            "max_split_size_mb: a large free block is then not eaten up by small tensors that outlive it, which "
            "would keep it from ever being whole again. A request that is as large takes such a block only when "
            "little is left over. none splits every block. At least allocator.large_segment.",
        .allocator = "caching",
        .applies = "with allocator.kind caching",
        .needs = {{"caching", HR_KNOB_ALLOCATOR_KIND}}},
    ROW(ALLOCATOR_MAX_NON_SPLIT_ROUNDING, BYTES, "", "B")
        .min = 11534336, .max = BYTES_MAX,
        .line = "how much larger than asked for an unsplit block may be",
        .explanation =
            "max_non_split_rounding_mb: a request of allocator.max_split or more takes a free block only when it "
            "is less than this larger than the request, because the rest is lost. none is the size of "
            "allocator.large_segment, PyTorch's default.",
        .allocator = "caching",
        .applies = "with allocator.kind caching and allocator.max_split",
        .needs = {{"caching", HR_KNOB_ALLOCATOR_KIND}}},
    ROW(ALLOCATOR_LARGE_SEGMENT, BYTES, "20MiB", "B")
        .min = 10485761, .max = BYTES_MAX,
        .line = "what the driver is asked for when a block of 1 to 10 MiB is wanted",
        .explanation =
            "large_segment_size_mb: tensors above 1 MiB and below 10 MiB share segments of this size; with "
            "expandable segments it is the size of the handles that are mapped, and then a multiple of 2 MiB. "
            "Smaller ones waste less of a card that is nearly full.",
        .allocator = "caching",
        .applies = "with allocator.kind caching",
        .needs = {{"caching", HR_KNOB_ALLOCATOR_KIND}}},
    ROW(ALLOCATOR_GC_THRESHOLD, REAL, "", "of the limit")
        .min = 0.000001, .max = 0.999999,
        .line = "share of the limit above which long unused segments are given back",
        .explanation =
            "garbage_collection_threshold: before the driver is asked for more and while the pool is larger than "
            "this share of its limit, whole free segments go back that have waited longer than the mean. PyTorch "
            "collects only below a limit that is a fraction of the card.",
        .allocator = "caching",
        .applies = "with allocator.kind caching and allocator.fraction",
        .needs = {{"caching", HR_KNOB_ALLOCATOR_KIND}}},
    ROW(ALLOCATOR_EXPANDABLE_SEGMENTS, CHOICE, "off", "")
        .choices = OFF_ON,
        .line = "segments that grow in place instead of a new one for each larger block",
        .explanation =
            "expandable_segments: addresses for more than the card are reserved once for each stream and pool, and "
            "memory is mapped into them as it is needed, so that no segment's end parts what is free. What "
            "fragments under off often fits under on.",
        .allocator = "caching",
        .applies = "with allocator.kind caching",
        .needs = {{"caching", HR_KNOB_ALLOCATOR_KIND}}},
    ROW(ALLOCATOR_ROUNDUP, TEXT, "", "divisions")
        .line = "steps between two powers of two that sizes are rounded up to",
        .explanation =
            "roundup_power2_divisions in PyTorch's words: 4 rounds 1100 KiB up to 1280 KiB, the next quarter between "
            "1 and 2 MiB; [256:1,512:2,>:8] has divisions for sizes from 256 MiB, 512 MiB and beyond. Equal sizes are "
            "reused more often and more is lost inside blocks. \"\" rounds to 512 bytes.",
        .allocator = "caching",
        .applies = "with allocator.kind caching",
        .needs = {{"caching", HR_KNOB_ALLOCATOR_KIND}}},
    ROW(ALLOCATOR_CONF, TEXT, "", "")
        .line = "PyTorch's own configuration, as in PYTORCH_ALLOC_CONF",
        .explanation =
            "key:value,key:[a:b] with every option that PyTorch knows. It means the same as the knobs beside it, and "
            "may not say otherwise. Options of locks, pinned memory and address space are checked and change nothing "
            "here; backend:cudaMallocAsync is allocator.kind async.",
        .allocator = "caching",
        .applies = "with allocator.kind caching",
        .needs = {{"caching", HR_KNOB_ALLOCATOR_KIND}}},
    ROW(ALLOCATOR_VERSION, CHOICE, "2.13", "")
        .choices = {"2.13", "2.12", "2.11"},
        .line = "PyTorch's version whose order of free blocks is followed",
        .explanation =
            "Of free blocks of one size, PyTorch 2.13 and later take the one whose segment was taken first, 2.12 "
            "the one that was cut off first, 2.11 and earlier the one with the lowest address. What is left free "
            "then fragments otherwise; in a pool that is nearly full other requests fail.",
        .allocator = "caching",
        .applies = "with allocator.kind caching",
        .needs = {{"caching", HR_KNOB_ALLOCATOR_KIND}}},
    ROW(BATCH_SIZE, INT, "32", "samples")
        .min = 1, .max = 1048576,
        .line = "samples in memory at once",
        .explanation =
            "Activations and input grow with it in proportion; weights, gradients and optimizer state do "
            "not. It is the first knob to turn when a step does not fit."},
    ROW(BATCH_ACCUMULATE, INT, "1", "batches")
        .min = 1, .max = 65536,
        .line = "batches whose gradients are added up before one update",
        .explanation =
            "With N the step runs N batches of batch.size one after the other and updates once, with the "
            "mean of their gradients: as one batch of N x batch.size would, batch normalisation aside, which "
            "sees one batch at a time. Activations stay those of one batch; one sum for each weight is added, "
            "4 bytes a parameter. Steps, updates and schedules count updates, the loss is the mean over the "
            "N batches. All N are full: what an epoch leaves over for no whole update is dropped or padded "
            "as batch.remainder says.",
        .applies = "with execution.tape once or persistent",
        .needs = {{"once persistent", HR_KNOB_EXECUTION_TAPE}}},
    ROW(BATCH_REMAINDER, CHOICE, "drop", "")
        .choices = {"drop", "keep", "pad"},
        .line = "what becomes of the last samples of an epoch that fill no batch",
        .explanation =
            "drop leaves them out, so that every step has the same shapes. keep trains them as a smaller "
            "batch, a program of its own, weighted by its own count. pad fills the batch up with the samples "
            "that the epoch began with, which are trained once more: every sample is seen, in one shape. With repeat in front "
            "of batch in pipeline.stages no batch is partial."},
    ROW(PRECISION_POLICY, CHOICE, "float32", "")
        .choices = {"float32", "mixed_float16", "mixed_bfloat16", "float16", "bfloat16", "float64"},
        .line = "number type of weights, activations and gradients",
        .explanation =
            "float32 takes 4 bytes a number. mixed_float16 and mixed_bfloat16 (Keras' names) compute and keep "
            "activations in 2 bytes, while weights, their gradients and optimizer state stay float32 and every weight "
            "is cast to a copy of 2 bytes: less memory for large batches, more for small ones. float16 and bfloat16 "
            "make everything 2 bytes but losses and statistics; small updates are then lost to rounding. float64 "
            "takes 8 bytes; it is there to judge the arithmetic of the others. The cpu multiplies bfloat16 where "
            "the processor can; everything else in 2 bytes it computes in float32 a tile at a time, as a card does.",
        .applies = "float64 on device.kind reference and plan only"},
    ROW(PRECISION_LOSS_SCALE, TEXT, "", "")
        .steps = {"none", "dynamic", "1024", "32768"},
        .line = "factor that keeps float16 gradients in range: dynamic, none, a number",
        .explanation =
            "float16 cannot hold a gradient below 6e-8. The loss is multiplied by the scale and every gradient divided "
            "by it before the update. dynamic is Keras' LossScaleOptimizer: it begins at 32768, doubles after 2000 "
            "finite steps in a row, and halves at a step whose gradients overflow, which is left out. A number stays. "
            "\"\" is Keras' choice: dynamic with mixed_float16, none otherwise."},
    ROW(PRECISION_LOSS_SCALE_FLOOR, CHOICE, "none", "")
        .choices = {"none", "one"},
        .line = "smallest dynamic loss scale",
        .explanation =
            "Keras 3 halves without end: a model that always overflows drives the scale to 0. one is the older "
            "tf.mixed_precision rule: never below 1, and doubled only while the result is finite.",
        .applies = "with a dynamic precision.loss_scale"},
    ROW(PRECISION_TF32, CHOICE, "off", "")
        .choices = OFF_ON,
        .line = "let float32 products round their operands to TF32",
        .explanation =
            "TF32 keeps float32's range and 10 bits of its fraction; tensor cores multiply it several times faster "
            "than float32, with float32 sums. No tensor becomes smaller, but another kernel may want another "
            "workspace. PyTorch allows it in convolutions and not in products of matrices, TensorFlow in both.",
        .applies = "to float32 convolutions and products: what computes on device.kind cuda, the time on plan and cuda"},
    ROW(PRECISION_HEALTH, CHOICE, "off", "")
        .choices = OFF_ON,
        .line = "count gradients that float16 would flush to zero or overflow",
        .explanation =
            "Each step tells, layer by layer, the share of gradients below 6e-8 and above 65504: whether float16 could "
            "hold them, and with which loss scale. Costs one more pass over the gradients; a dynamic loss scale makes "
            "it anyway."},
    ROW(CHECKPOINT_STRATEGY, TEXT, "none", "")
        .steps = {"none", "selective", "blocks", "sqrt"},
        .line = "which results are dropped in forward and computed again for backward",
        .explanation =
            "none keeps what backward needs. every:K cuts the layers into segments of K, sqrt into as many "
            "segments as each has layers: only what crosses a cut is kept, the rest is computed again, segment "
            "by segment, for at most one more forward pass. blocks cuts behind every residual block; what all "
            "blocks of a run are given beside their input is kept as well: a bias of positions, the encoder's "
            "result. selective computes normalisations, activations, dropout and attention scores again: "
            "little work for much memory. list:A,B cuts behind the layers A and B. budget:SIZE keeps the peak in use of a "
            "training step at or below SIZE (budget:6GiB), as the allocator counts it, and computes little again for that: of many ways to "
            "cut the layers, and to keep everything, what is costly, or nothing in each piece, of selective, blocks, sqrt, every:2 "
            "and every:4, and of letting go of single results wherever there is no room, again and again if need be, the cheapest that "
            "fits when it is planned. A smaller SIZE never has a higher peak; one that cannot be kept is refused, with the smallest peak "
            "that was found and what one instruction needs. Weights come out bit for bit the same."},
    ROW(OFFLOAD_ACTIVATIONS, CHOICE, "off", "")
        .choices = OFF_ON,
        .line = "what backward waits for is put into host memory and fetched again",
        .explanation =
            "Saved activations are copied to the host behind their last use in forward and come back before "
            "their first use in backward: memory for bytes over the link, in both directions, every step. "
            "What is small, or needed again at once, stays. Under checkpoint.strategy=budget:SIZE only what SIZE leaves no room for goes, "
            "each value the cheaper way: to the host and back while the link is idle, or computed again; where that is not enough, all that "
            "waits goes."},
    ROW(OFFLOAD_OPTIMIZER, CHOICE, "off", "")
        .choices = OFF_ON,
        .line = "optimizer state lives in host memory and comes for its update only",
        .explanation =
            "The slots of every variable are fetched before its update and go back behind it. The device "
            "holds those of a few variables at a time; the link carries all of them both ways, every "
            "update."},
    ROW(OFFLOAD_PREFETCH, INT, "4", "instructions")
        .min = 0, .max = 1000,
        .line = "instructions between a copy and the one that needs it done",
        .explanation =
            "A copy runs beside the arithmetic. More instructions between hide it better, and keep more of "
            "what is on its way in memory. Single values that a budget sends go by the time that the link takes instead.",
        .applies = "with offload.activations or offload.optimizer on"},
    ROW(EXECUTION_AS, CHOICE, "headroom", "")
        .choices = {"headroom", "pytorch", "tensorflow"},
        .line = "whose rules decide what an eager step holds",
        .explanation =
            "headroom holds what TensorFlow's tape would, and works in place where that is legal. pytorch holds what "
            "PyTorch 2.15 would: what autograd saves of each operation, until the gradient of that operation has been "
            "taken; indices and labels in int64; the loss's logarithms and both their gradients; results over their "
            "input only where torchvision's networks ask for it, gradients added up in place; and gradients of weights "
            "until the step ends. What our kernels do without is a `hold` of the listing: bytes that are asked for and "
            "given back where PyTorch does it. The arithmetic is the same, and so are the weights, but for the order in which gradients "
            "of packed attention and of what else reads its input are added up. "
            "With precision.policy=mixed_bfloat16 it is torch.autocast, loss included: products in two bytes, norms of "
            "sequences and the loss in float32, all else in what comes; casts of weights to the end of autocast, or as "
            "long as autograd keeps them. checkpoint.strategy is torch.utils.checkpoint. Gradients of batch.accumulate are added into .grad where they lie, and clipped there. For a card (device.card, or the one at hand) the workspaces are there that PyTorch gives cuBLAS with the "
            "first products and leaves it. With device.kind=cuda convolutions have the workspaces of the engines that PyTorch would take, asked of "
            "cuDNN where it is found (execution.memory_format, execution.cudnn_tf32); on other devices they have our own kernels'. "
            "tensorflow holds what TensorFlow 2.21 would of the layers of Keras 3, eagerly: most of them are composed of smaller "
            "operations, and the tape keeps inputs and results of each, until its gradient has been taken; nothing is written over an "
            "operand. Both know most layers, and say what they do not know."},
    ROW(EXECUTION_ANSWER, CHOICE, "named", "")
        .choices = {"named", "dropped"},
        .line = "whether the training loop has a name for what the model answered",
        .explanation =
            "named is `y = model(x); loss = loss_of(y, t)`: predictions live until the step ends, for the name does. dropped is "
            "`loss_of(model(x), t)`, `model(x, labels=t).loss` and a Trainer whose function returns the loss alone: they go when "
            "the loss is there, for autograd keeps their log-softmax and not them. Of a language model with 50,000 words they are "
            "the largest tensor.",
        .applies = "with execution.as pytorch and execution.tape once or persistent",
        .needs = {{"pytorch", HR_KNOB_EXECUTION_AS}, {"once persistent", HR_KNOB_EXECUTION_TAPE}}},
    ROW(EXECUTION_MEMORY_FORMAT, CHOICE, "contiguous", "")
        .choices = {"contiguous", "channels_last"},
        .line = "how PyTorch's images lie, for cuDNN's workspaces",
        .explanation =
            "channels_last is `model.to(memory_format=torch.channels_last)` and the same of the batch. cuDNN's engines for "
            "tensor cores want images so: of contiguous ones, PyTorch's default, most make copies in their workspace, which then is "
            "as large as what goes in and comes out. Our own kernels have images as they always do.",
        .applies = "with execution.as=pytorch to convolutions on device.kind cuda, where cuDNN is found",
        .needs = {{"pytorch", HR_KNOB_EXECUTION_AS}, {"cuda", HR_KNOB_DEVICE_KIND}}},
    ROW(EXECUTION_CUDNN_TF32, CHOICE, "on", "")
        .choices = OFF_ON,
        .line = "torch.backends.cudnn.allow_tf32, for cuDNN's workspaces",
        .explanation =
            "Whether PyTorch's convolutions of float32 may use engines that round to TF32: on by default there, while products may "
            "not (precision.tf32 is our own kernels'). Engines that do without often have other workspaces.",
        .applies = "with execution.as=pytorch to float32 convolutions on device.kind cuda, where cuDNN is found",
        .needs = {{"pytorch", HR_KNOB_EXECUTION_AS}, {"cuda", HR_KNOB_DEVICE_KIND}}},
    ROW(EXECUTION_MODE, CHOICE, "eager", "")
        .choices = {"eager", "graph"},
        .line = "how long tensors live",
        .explanation =
            "eager keeps what TensorFlow's tape keeps: every operation's inputs and outputs that its "
            "gradient may ask for, until the gradients are taken. graph knows the whole step: it keeps "
            "only what the backward pass truly needs, releases after the last use, and works in place "
            "where that is legal."},
    ROW(EXECUTION_FUSE, CHOICE, "on", "")
        .choices = OFF_ON,
        .line = "compute an activation inside the operation before it",
        .explanation =
            "on lets a convolution, dense layer, normalisation or addition apply the activation behind it "
            "while the result is still in registers: the tensor between the two is never allocated, and "
            "nothing is written and read again. In graph mode the gradient of cross-entropy "
            "is made with the loss, and a card also adds residuals and gradients inside normalisations and "
            "products, cuts gradients inside theirs, makes GELU (its tanh form) inside products, queries, keys "
            "and values with one product, writes gradients of dense weights in float32, and lays logits over a "
            "large vocabulary in rows of a multiple of 64, as its library wants them; in two-byte types that "
            "rounds less often than off does. On cpu an update of float32 weights by sgd, momentum, rmsprop, adam or lion applies the masks of "
            "compress.prune as it writes: 4 bytes a weight instead of 12, and the same weights. "
            "The padding is shown. A batch that is only read in two bytes is rounded by the host and takes half the bytes "
            "on its way. off keeps instructions apart and rows plain.",
        .applies = "on device.kind cpu, cuda and plan; on reference to the bytes of a batch alone"},
    ROW(EXECUTION_INPLACE, CHOICE, "on", "")
        .choices = OFF_ON,
        .line = "let a result take the bytes of an operand that is needed no more",
        .explanation =
            "on writes a result over an operand of the same size when that operand is not read again and "
            "the operation allows it: additions, activations and their gradients. off gives every result "
            "bytes of its own, as an eager program does while its variables still name the operands. The "
            "weights are the same bit for bit.",
        .applies = "with execution.as headroom or pytorch",
        .needs = {{"headroom pytorch", HR_KNOB_EXECUTION_AS}}},
    ROW(EXECUTION_DETERMINISTIC, CHOICE, "off", "")
        .choices = OFF_ON,
        .line = "use only kernels that give the same bits every time",
        .explanation =
            "on leaves out kernels that add in an order that changes from run to run. Convolutions lose next to "
            "nothing by it; the backward pass of attention then keeps partial sums of every pair of positions: "
            "batch x heads x length x length x 2 bytes of workspace. Dropout inside attention then has the masks of the "
            "other devices, by our own kernels; off lets cuDNN draw its own, which differ with the split into "
            "micro-batches.",
        .applies = "on device.kind cuda: the other devices always do",
        .needs = {{"cuda", HR_KNOB_DEVICE_KIND}}},
    ROW(EXECUTION_CUDA_GRAPH, CHOICE, "off", "")
        .choices = OFF_ON,
        .line = "capture a steady step into a CUDA graph and replay it",
        .explanation =
            "The processor then submits one graph for a step instead of one kernel after the other, which is what "
            "small models wait for. A graph holds addresses: it is replayed while every tensor lies where it lay "
            "when the step was captured, and captured anew when one has moved. It needs no memory of the pool; what "
            "the driver keeps for it is part of `outside`.",
        .applies = "on device.kind cuda; a planned step on a card takes the time that it saves"},
    ROW(EXECUTION_TAPE, CHOICE, "once", "")
        .choices = {"none", "once", "persistent"},
        .line = "what is recorded for the gradients, and how long it is kept",
        .explanation =
            "once is TensorFlow's GradientTape: what it keeps is released when the gradients have been "
            "taken. persistent keeps it until the step ends, as a persistent tape does that is not deleted. "
            "none records nothing: steps compute losses only, no weight moves and no update is counted, "
            "while the optimizer's state stays where it is.",
        .applies = "persistent with execution.mode eager: a graph has no tape"},
    ROW(EXECUTION_RETAIN, CHOICE, "none", "")
        .choices = {"none", "losses", "predictions", "variables"},
        .line = "a leak on purpose: what every step leaves behind",
        .explanation =
            "losses and predictions are put into a list that is never emptied; variables makes a fresh "
            "layer like the model's last one in every step, with its optimizer state, and keeps it. What is "
            "retained is given back by the next rebuild only, so in-use memory grows by the same bytes with "
            "every step until none is left. The weights do not change by it."},
    ROW(OPTIMIZER_KIND, CHOICE, "adam", "")
        .choices = {"sgd", "momentum", "rmsprop", "adam", "adamw", "adafactor", "adafactor_keras", "lion",
                    "adam8bit"},
        .line = "how weights follow the gradients",
        .explanation =
            "What it keeps for each float32 weight, all the time: sgd nothing; momentum, rmsprop and lion 4 "
            "bytes; adam and adamw, whose form and epsilon are Keras' unless optimizer.form says torch, 8; adam8bit 2 and a fraction (tensors below 4096 elements 8); adafactor "
            "a number for each row and column of a matrix, 4 bytes for each weight of a vector; "
            "adafactor_keras what Keras holds, which is 4 bytes for every weight beside the factors."},
    ROW(OPTIMIZER_LEARNING_RATE, REAL, "0.001", "")
        .min = 0, .max = 1000, .hot = true,
        .line = "size of a step along the gradient",
        .explanation =
            "Costs no memory and may change between any two steps. 0 computes everything and changes no "
            "weight."},
    ROW(OPTIMIZER_MOMENTUM, REAL, "0.9", "")
        .min = 0, .max = 0.999999,
        .line = "share of the last update that goes into the next",
        .explanation =
            "Keras' rule: v = momentum v - learning_rate g; w = w + v.",
        .applies = "with optimizer.kind momentum",
        .needs = {{"momentum", HR_KNOB_OPTIMIZER_KIND}}},
    ROW(OPTIMIZER_FORM, CHOICE, "keras", "")
        .choices = {"keras", "torch"},
        .line = "whose Adam: where epsilon stands, and its default",
        .explanation =
            "With m and v the moments and c = 1 - beta^t their corrections, keras takes "
            "learning_rate sqrt(c2)/c1 m / (sqrt(v) + epsilon) from a weight, epsilon 1e-7; torch takes "
            "learning_rate m/c1 / (sqrt(v/c2) + epsilon), epsilon 1e-8, and its adamw decays by 0.01 instead of 0.004. "
            "Memory is the same.",
        .applies = "with optimizer.kind adam, adamw and adam8bit",
        .needs = {{"adam adamw adam8bit", HR_KNOB_OPTIMIZER_KIND}}},
    ROW(OPTIMIZER_IMPLEMENTATION, CHOICE, "foreach", "")
        .choices = {"foreach", "loop", "fused"},
        .line = "how PyTorch's optimizer goes through the weights",
        .explanation =
            "foreach, which PyTorch takes on a card, has lists of all weights at once: Adam, AdamW and RMSprop make a "
            "list of denominators as large as the weights, and a weight decay that is added to gradients makes another. "
            "loop (foreach=False) makes them for one weight after the other; fused (fused=True) makes none. The update "
            "is the same.",
        .applies = "with execution.as pytorch and execution.tape once or persistent",
        .needs = {{"pytorch", HR_KNOB_EXECUTION_AS}, {"once persistent", HR_KNOB_EXECUTION_TAPE}}},
    ROW(OPTIMIZER_BETA1, REAL, "", "")
        .min = 0, .max = 0.999999,
        .line = "share of the first moment that an update keeps; rmsprop: of the only one",
        .explanation =
            "none is the optimizer's own, 0.9. Keras calls rmsprop's rho and PyTorch alpha (there 0.99).",
        .applies = "with optimizer.kind adam, adamw, adam8bit, lion and rmsprop",
        .needs = {{"adam adamw adam8bit lion rmsprop", HR_KNOB_OPTIMIZER_KIND}}},
    ROW(OPTIMIZER_BETA2, REAL, "", "")
        .min = 0, .max = 0.999999,
        .line = "share of the second moment that an update keeps",
        .explanation =
            "none is the optimizer's own: 0.999, with lion 0.99. Language models are often trained with 0.95.",
        .applies = "with optimizer.kind adam, adamw, adam8bit and lion",
        .needs = {{"adam adamw adam8bit lion", HR_KNOB_OPTIMIZER_KIND}}},
    ROW(OPTIMIZER_EPSILON, REAL, "", "")
        .min = 1e-30, .max = 1,
        .line = "what is added to the root that an update is divided by",
        .explanation =
            "none is the optimizer's own: 1e-7 as in Keras, 1e-8 under optimizer.form torch. In float16 slots and "
            "with gradients near zero it decides how far a weight moves. rmsprop adds it below the root, as Keras does.",
        .applies = "with optimizer.kind adam, adamw, adam8bit and rmsprop",
        .needs = {{"adam adamw adam8bit rmsprop", HR_KNOB_OPTIMIZER_KIND}}},
    ROW(OPTIMIZER_FUSED_BACKWARD, CHOICE, "off", "")
        .choices = OFF_ON,
        .line = "update a weight as soon as its gradient is there, and free the gradient",
        .explanation =
            "off takes all gradients first and then updates: 4 bytes a parameter are held together. on "
            "updates each variable behind the last instruction of the backward pass that needs it, and frees "
            "its gradient at once. The weights are the same bit for bit. What must see all gradients before "
            "the first update cannot be combined with it.",
        .applies = "with execution.tape once or persistent",
        .needs = {{"once persistent", HR_KNOB_EXECUTION_TAPE}}},
    ROW(OPTIMIZER_WEIGHT_DECAY, REAL, "", "")
        .steps = {"none", "0", "0.0001", "0.001", "0.01", "0.1"},
        .min = 0, .max = 1,
        .line = "share of every weight that an update takes away, times the learning rate",
        .explanation =
            "Decoupled from the gradient, as in AdamW: w = w - learning_rate weight_decay w, before the "
            "update. none is the optimizer's own: 0.004 with adamw, as in Keras (0.01 under optimizer.form torch), and 0 with the others. It "
            "costs no memory."},
    ROW(OPTIMIZER_CLIP_NORM, REAL, "", "")
        .steps = {"none", "0.1", "0.5", "1", "5"},
        .min = 1e-9, .max = 1e9,
        .line = "largest norm of all gradients together; larger ones are scaled down to it",
        .explanation =
            "Keras' global_clipnorm. All gradients must be there before the first weight moves. graph scales "
            "them in place; eager makes a second list, as TensorFlow does."},
    ROW(OPTIMIZER_EMA, REAL, "", "")
        .steps = {"none", "0.9", "0.99", "0.999", "0.9999"},
        .min = 0, .max = 0.999999,
        .line = "keep an average of every weight: the share of it that an update leaves",
        .explanation =
            "average = ema average + (1 - ema) w behind every update: 4 bytes for each float32 weight. "
            "Evaluation uses the averages, and a save holds them as NAME:ema. none keeps no average."},
    ROW(OPTIMIZER_SCHEDULE, CHOICE, "none", "")
        .choices = {"none", "cosine", "linear", "step"},
        .hot = true,
        .line = "how the learning rate falls from update to update",
        .explanation =
            "cosine and linear go from optimizer.learning_rate to schedule_factor times it over "
            "schedule_updates and stay there; step multiplies it with schedule_factor every "
            "schedule_updates. It costs no memory."},
    ROW(OPTIMIZER_SCHEDULE_UPDATES, INT, "0", "updates")
        .min = 0, .max = 1e12, .hot = true,
        .line = "updates that the schedule takes, or between two of its steps",
        .explanation =
            "Counted behind the warm-up. 0 is the rest of train.steps. Where the schedule has ended, the "
            "learning rate stays as it is.",
        .applies = "with optimizer.schedule cosine, linear and step",
        .needs = {{"cosine linear step", HR_KNOB_OPTIMIZER_SCHEDULE}}},
    ROW(OPTIMIZER_SCHEDULE_FACTOR, REAL, "", "")
        .steps = {"none", "0", "0.01", "0.1", "0.5"},
        .min = 0, .max = 1, .hot = true,
        .line = "share of the learning rate at the end of the schedule, or left by each step",
        .explanation =
            "none is 0 with cosine and linear, which then end in a standstill, and 0.1 with step, which takes "
            "nine tenths away each time.",
        .applies = "with optimizer.schedule cosine, linear and step",
        .needs = {{"cosine linear step", HR_KNOB_OPTIMIZER_SCHEDULE}}},
    ROW(OPTIMIZER_WARMUP, INT, "0", "updates")
        .min = 0, .max = 1e9, .hot = true,
        .line = "first updates, over which the learning rate rises from zero",
        .explanation =
            "Update k of n has k/n of the learning rate; the schedule begins behind them."},
    ROW(WORKSPACE_LIMIT, BYTES, "", "B")
        .steps = {"0B", "1MiB", "8MiB", "32MiB", "128MiB", "512MiB", "none"},
        .min = 0, .max = BYTES_MAX,
        .line = "most scratch memory that one operation may take",
        .explanation =
            "A faster kernel often wants more scratch. Kernels whose workspace and reorders "
            "need more than this are not chosen; an operation that has no smaller kernel is refused by "
            "name. none leaves the choice to speed alone; on device.kind cuda, where it chooses among the engines of cuDNN "
            "and cuBLASLt, none is 4 GiB, as in TensorFlow. The partial sums of our own kernels on a card, which have no "
            "other way, are not refused. A planned step on a card takes 20 % more for each engine that its library would rather "
            "have taken, up to twice the time: an estimate, as libraries say their order and no times."},
    ROW(WORKSPACE_SEARCH, CHOICE, "off", "")
        .choices = OFF_ON,
        .line = "take the engine of a convolution or attention measured to be the fastest",
        .explanation =
            "off takes the first engine that cuDNN's heuristics name and workspace.limit allows. on times the first ten of every "
            "convolution and of attention on the card, once, and keeps the times for that kind of card and version of cuDNN; from then "
            "on the fastest that the limit allows is taken, by plans without the card too. An engine that was never "
            "timed comes behind those that were. As PyTorch's torch.backends.cudnn.benchmark, but remembered: the "
            "same engines, workspaces and bits in the next run.",
        .applies = "on device.kind cuda, to what cuDNN computes",
        .needs = {{"cuda", HR_KNOB_DEVICE_KIND}}},
    ROW(THREADS_COUNT, INT, "0", "threads")
        .min = 0, .max = 256,
        .line = "threads that compute; 0: one for each core",
        .explanation =
            "Workspaces and the last digits of results depend on it: two runs agree bit for bit only with "
            "the same number.",
        .applies = "on device.kind cpu",
        .needs = {{"cpu", HR_KNOB_DEVICE_KIND}}},
    ROW(PIPELINE_SOURCE, CHOICE, "auto", "")
        .choices = {"auto", "generated", "cifar10", "mnist", "images", "npy", "tfrecord", "tokens", "text", "csv"},
        .line = "where the samples come from",
        .explanation =
            "auto looks at what pipeline.path holds, and generates a learnable image set when there is no "
            "path. cifar10 is the binary form, a folder of data_batch_*.bin or cifar-10-binary.tar.gz as "
            "it was downloaded. mnist is a folder of IDX files, plain or .gz. images is a folder of JPEG and PNG files of any size with one "
            "folder per class, or train and val (or test) folders of such folders; classes are their sorted names. Also a .tar of "
            "that, read in place, a .tar.gz or .zip, held whole, and a WebDataset: .tar shards whose samples are a .jpg "
            "or .png and a .cls with the number of the class. npy is x_train.npy, y_train.npy, x_test.npy and "
            "y_test.npy in a folder or an .npz, with the types and shapes that the model takes; bytes are images. tfrecord is files of tf.train.Example, or a "
            "folder of *.tfrecord and *-00000-of-00010: JPEG, PNG or bytes in image/encoded or image, the class in "
            "image/class/label or label, else features by their type and size. For language models: tokens is llm.c's "
            ".bin, or 16-bit numbers without a header; text is any file, or a folder of *.txt, each byte a token. csv "
            "is a table of numbers with a heading, a sample a row; the column label, target or class is the label, or the last. "
            "Files with val or test in their names are held out, else one sample of ten is."},
    ROW(PIPELINE_PATH, TEXT, "", "")
        .line = "folder or archive with the samples",
        .explanation =
            "In a preset a relative path counts from the folder of that preset, after --set from the "
            "current folder. Archives are read in place: nothing is unpacked.",
        .applies = "with pipeline.source auto, cifar10, mnist, images, npy, tfrecord, tokens, text and csv",
        .needs = {{"auto cifar10 mnist images npy tfrecord tokens text csv", HR_KNOB_PIPELINE_SOURCE}}},
    ROW(PIPELINE_RESIZE, CHOICE, "bilinear", "")
        .choices = {"bilinear", "nearest", "area"},
        .line = "how images of another size become the model's",
        .explanation =
            "Of images whose files differ in size. A JPEG is decoded at the smallest of 1/8, 1/4, 1/2 and 1 of its size "
            "that covers the model's, and then resized: bilinear between the four nearest pixels, nearest to the "
            "nearest pixel, area to the mean of what lies under each pixel. As tf.image.resize without antialias, and "
            "rounded. The whole image is scaled, whatever its shape.",
        .applies = "with pipeline.source auto, images and tfrecord",
        .needs = {{"auto images tfrecord", HR_KNOB_PIPELINE_SOURCE}}},
    ROW(PIPELINE_BAD, CHOICE, "stop", "")
        .choices = {"stop", "skip"},
        .line = "what becomes of a sample that cannot be read",
        .explanation =
            "stop ends the run with what is wrong and where: a file that is cut, empty, no image, gone or changed, a label "
            "that is out of range. skip takes the next sample of the set in file order that can be read, "
            "behind the last the first, and counts it: the same one on any number of threads and after a resume. The "
            "report has how many there were. When none can be read, the run ends.",
        .applies = "with pipeline.source auto, cifar10, mnist, images, npy, tfrecord, tokens, text and csv",
        .needs = {{"auto cifar10 mnist images npy tfrecord tokens text csv", HR_KNOB_PIPELINE_SOURCE}}},
    ROW(PIPELINE_FILTER, TEXT, "", "")
        .line = "only samples of these classes: label:0,1,7",
        .explanation =
            "Of both sets the samples of these classes stay; \"\" keeps all. Labels are looked at when the run begins, and the "
            "numbers of the samples that stay take 4 bytes each of host memory. tf.data's filter() asks a function "
            "of each element in every epoch instead. For data whose labels are known without the samples: other "
            "sources say that theirs are not.",
        .applies = "with pipeline.source auto, generated, cifar10, mnist, images and npy",
        .needs = {{"auto generated cifar10 mnist images npy", HR_KNOB_PIPELINE_SOURCE}}},
    ROW(PIPELINE_SAMPLES, INT, "", "samples")
        .steps = {"all", "1000", "10000", "50000"},
        .min = 1, .max = 16777216, .unset = "all",
        .line = "training samples that are taken: the first so many",
        .explanation =
            "An epoch has so many samples, of files as of generated ones; where there are fewer, those. Of generated data "
            "all is 10000, and more are drawn when more are wanted: what 50,000 images of a kind take in memory is seen without "
            "their files. tf.data calls it take()."},
    ROW(PIPELINE_ARRAY, CHOICE, "off", "")
        .choices = {"off", "uint8", "float32", "float64"},
        .line = "the training set is held as one array in host memory",
        .explanation =
            "Images are read and decoded when the run begins and held as a script holds them that loads its data before it "
            "trains: uint8 as they are, float32 and float64 divided by 255. NumPy's x / 255 makes float64, 8 "
            "times the bytes: 1.23 GB for the 50,000 images of CIFAR-10. What travels to the device is another matter. What "
            "is no image is held as the model takes it. off streams: a sample is read when a batch is made of it."},
    ROW(PIPELINE_MODE, CHOICE, "stream", "")
        .choices = {"stream", "eager_stack"},
        .line = "how pipeline.array is made: sample by sample in its place, or by a list",
        .explanation =
            "eager_stack makes the array as a loop does that appends each image to a list and stacks the list: list and "
            "array are there at once, twice the bytes while it is made. stream writes each image where it belongs.",
        .applies = "with pipeline.array uint8, float32 and float64",
        .needs = {{"uint8 float32 float64", HR_KNOB_PIPELINE_ARRAY}}},
    ROW(PIPELINE_STAGES, TEXT, "interleave,cache,shuffle,map,batch,prefetch", "")
        .line = "what samples pass through, in this order",
        .explanation =
            "The chain of a tf.data pipeline, as it stands in a program: slices, interleave, cache, repeat, shuffle, map, batch and "
            "prefetch; map and batch must be there. slices comes first and copies the training set into memory, as from_tensor_slices "
            "copies its arrays; or interleave does, which reads several files in turn. What stands before map keeps samples as their files have them, what stands behind it "
            "keeps values, which are 4 times as large where bytes become float32. A shuffle before the cache is "
            "drawn once: every epoch then has that order. Epochs follow one another in any case; repeat in front of batch "
            "fills the last batch of an epoch with samples of the next, so that batch.remainder has nothing to say, and repeat "
            "in front of shuffle lets the buffer mix two epochs: a sample may come again before others came once. How large a "
            "stage is stands in its own knob."},
    ROW(PIPELINE_INTERLEAVE, INT, "1", "files")
        .min = 1, .max = 1024,
        .line = "files that samples are taken from in turn; 1: one file after the other",
        .explanation =
            "Where the training set is several files, the samples come from so many of them in turn, in front of the shuffle, whose buffer "
            "then holds samples of all of these files. A file that ends makes room for the next. The order is that of "
            "tf.data's interleave(cycle_length, block_length), whatever reads the files. It takes 8 bytes for each "
            "of these files. A data set of one file stays as it is.",
        .applies = "with pipeline.source auto, cifar10, tfrecord, tokens and text",
        .needs = {{"auto cifar10 tfrecord tokens text", HR_KNOB_PIPELINE_SOURCE}}},
    ROW(PIPELINE_INTERLEAVE_BLOCK, INT, "1", "samples")
        .min = 1, .max = 16777216,
        .line = "samples that one file gives before the next one's turn, with pipeline.interleave",
        .explanation =
            "tf.data calls it block_length. Samples of one block lie side by side in their file, so that large blocks read a "
            "disk in longer runs, and small ones mix more.",
        .applies = "with pipeline.source auto, cifar10, tfrecord, tokens and text",
        .needs = {{"auto cifar10 tfrecord tokens text", HR_KNOB_PIPELINE_SOURCE}}},
    ROW(PIPELINE_AUGMENT, TEXT, "none", "")
        .line = "what is done at random to training images, in this order",
        .explanation =
            "Operations on the bytes of an image, behind decoding: flip (left and right, every second image), crop:PIXELS "
            "(black on each side, then a piece of the old size, as RandomCrop with padding), colour:STRENGTH (brightness, "
            "contrast and saturation from 1 - STRENGTH to 1 + STRENGTH, as ColorJitter), rotate:DEGREES (either way, black outside), "
            "erase (a black rectangle, every second image). flip,crop:4 is usual for CIFAR-10. What is drawn depends on train.seed, the "
            "epoch and the sample, not on threads or restarts. A cache behind map keeps the images of the first epoch for "
            "all. Data that are no images with one class each, and held-out images, stay as they are.",
        .applies = "to images with one class each, with pipeline.array off and uint8",
        .needs = {{"off uint8", HR_KNOB_PIPELINE_ARRAY}}},
    ROW(PIPELINE_AUGMENT_COPIES, INT, "0", "copies")
        .min = 0, .max = 64,
        .line = "variants of each image, made before training",
        .explanation =
            "0 augments when an image is asked for. Otherwise, as scripts do that augment first and train then, so many variants of every training image lie in host memory as "
            "bytes, beside the originals. One epoch takes the originals, the next the first variant, and so on, then all over "
            "again; variant v is what pipeline.augment makes in epoch v. With k copies that is k + 1 times the data; with 0 "
            "it is once, which saves k / (k + 1) of it: more than half from 2 copies on.",
        .applies = "with a list in pipeline.augment, and pipeline.array off and uint8",
        .needs = {{"off uint8", HR_KNOB_PIPELINE_ARRAY}}},
    ROW(PIPELINE_CACHE, CHOICE, "none", "")
        .choices = {"none", "ram", "file"},
        .line = "training samples that were read are kept for the next epoch",
        .explanation =
            "Its place in pipeline.stages decides what is kept. ram takes host memory for the whole training set, file "
            "takes it of a disk, in pipeline.cache_path, and both take it when the run begins. It saves reading and "
            "making samples again from the second epoch on. It does not save copies to the device: what is "
            "copied each step stays the same. tf.data calls it cache()."},
    ROW(PIPELINE_CACHE_PATH, TEXT, "", "")
        .line = "folder for the cache's file",
        .explanation =
            "The file has no name and is gone with the process. \"\" is headroom's folder in XDG_CACHE_HOME.",
        .applies = "with pipeline.cache=file",
        .needs = {{"file", HR_KNOB_PIPELINE_CACHE}}},
    ROW(PIPELINE_SHUFFLE, INT, "10000", "samples")
        .min = 0, .max = 16777216,
        .line = "samples in the shuffle buffer; 0: file order",
        .explanation =
            "Each sample is drawn at random from this many that wait: their numbers, or the samples themselves "
            "(pipeline.shuffle_of). The order depends on train.seed and the epoch only."},
    ROW(PIPELINE_SHUFFLE_OF, CHOICE, "indices", "")
        .choices = {"indices", "elements"},
        .line = "what waits in the shuffle buffer",
        .explanation =
            "indices: the numbers of samples, 4 bytes each; a sample is read once it is drawn. elements: the samples, "
            "as tf.data's shuffle(n) keeps them: n times the largest sample in host memory, and n of them are "
            "read before the first batch. The order is the same."},
    ROW(PIPELINE_MAP_THREADS, INT, "", "threads")
        .steps = {"auto", "1", "2", "4", "8", "16", "64"},
        .min = 0, .max = 64, .unset = "auto",
        .line = "threads that make the samples of a batch; 0: as many as it is worth",
        .explanation =
            "The samples of a batch are read, decoded and written side by side, the same bytes on any number of threads. "
            "Each thread has scratch of its own. 0 takes one for each MiB of a batch, at most one for each core: a "
            "small batch is made sooner than another thread wakes. auto is 0, or what pipeline.autotune decides. tf.data "
            "calls it num_parallel_calls, PyTorch's DataLoader num_workers."},
    ROW(PIPELINE_NORMALISE, CHOICE, "host", "")
        .choices = {"host", "device"},
        .line = "where the bytes of an image become numbers between 0 and 1",
        .explanation =
            "Normalising on the host multiplies what travels by 4 (float32) or 8 (float64): a batch of 16 images of 32x32x3 is "
            "49,152 bytes, and 196,608 or 393,216 as numbers. With device the bytes travel, a batch on the host and its place on "
            "the device are as much smaller, and the step begins with an instruction that divides by 255. Its result is an "
            "activation: eager holds it beside the bytes until the gradients are taken. Weights stay the same bit for bit. "
            "It is for models of one image and one class; other data travels as the model takes it.",
        .applies = "with pipeline.source auto, generated, cifar10, mnist, images, tfrecord and npy, and pipeline.array off and uint8",
        .needs = {{"auto generated cifar10 mnist images tfrecord npy", HR_KNOB_PIPELINE_SOURCE},
                  {"off uint8", HR_KNOB_PIPELINE_ARRAY}}},
    ROW(PIPELINE_TRANSFER, CHOICE, "auto", "")
        .choices = {"auto", "float32", "float64"},
        .line = "number type in which images that the host normalised travel",
        .explanation =
            "auto is the type that the first layer reads. float64 is what NumPy's x / 255 makes and a loop hands over that does not "
            "cast: twice the bytes of float32 on the host, on the link and in the batch's place on the device, where the step then "
            "begins with a cast. float32 sends it also to layers that read two-byte types. Weights stay the same bit for "
            "bit under every policy but float64. It is for models of one image and one class.",
        .applies = "with pipeline.normalise=host",
        .needs = {{"host", HR_KNOB_PIPELINE_NORMALISE}}},
    ROW(PIPELINE_PREFETCH, INT, "", "batches")
        .steps = {"auto", "0", "1", "2", "4", "16", "64"},
        .min = 0, .max = 64, .unset = "auto",
        .line = "batches made ready ahead of the step; 0: made when asked for",
        .explanation =
            "With 1 or more a thread of its own reads ahead while the step computes. Each batch waits in "
            "host memory, not on the device, in the type that the first layer reads. auto is 2, or what pipeline.autotune "
            "decides."},
    ROW(PIPELINE_AUTOTUNE, CHOICE, "off", "")
        .choices = {"off", "headroom", "tensorflow"},
        .line = "who decides what is auto of pipeline.map_threads and pipeline.prefetch",
        .explanation =
            "headroom measures what a batch costs to make and how long the step waits, and settles within ten seconds on "
            "the fewest threads and batches that hide it. tensorflow decides as tf.data does: by a model of processing "
            "times, with threads until the model is below its share of the cores, and a prefetch that doubles each time "
            "it was full and then empty. Memory is taken at the start for the most that may be decided, within "
            "pipeline.ram_limit, or half of the machine's, with all else that the pipeline holds: 8 batches as headroom, 64 "
            "as tensorflow. What "
            "is decided is how much of it is used. Batches stay the same, bit for bit."},
    ROW(PIPELINE_PINNED, CHOICE, "on", "")
        .choices = {"on", "off"},
        .line = "batches for a card are made in pinned memory",
        .explanation =
            "The system never moves or swaps pinned memory, so that the card copies from there by itself, beside its kernels, as with "
            "PyTorch's pin_memory. off: ordinary memory; the driver then copies each batch into pinned memory of its own first, and "
            "the copy waits for that. Where a system gives no more pinned memory a run goes on with ordinary memory, and says so.",
        .applies = "with device.kind cuda",
        .needs = {{"cuda", HR_KNOB_DEVICE_KIND}}},
    ROW(PIPELINE_DEVICE_PREFETCH, INT, "", "batches")
        .steps = {"auto", "0", "1", "2", "4", "16", "64"},
        .min = 0, .max = 64, .unset = "auto",
        .line = "batches copied to the device ahead of the step; 0: copied when the step begins",
        .explanation =
            "auto is 1 on device.kind cuda, whose link is narrow and whose copies run beside kernels, and 0 elsewhere. "
            "With 1 or more the copy of a later batch runs beside the step instead of before it. Each batch "
            "takes its bytes of device memory once more; beyond the first they buy nothing but patience "
            "with a host that is late. Weights stay the same bit for bit. tf.data calls it "
            "prefetch_to_device."},
    ROW(PIPELINE_RESIDENT, CHOICE, "off", "")
        .choices = {"off", "on"},
        .line = "one batch stays on the device: every step trains on it",
        .explanation =
            "For measuring: a step copies no batch and waits for none, so that its time is the device's, as of a benchmark whose "
            "batch lies in the device's memory before it begins. The batch is the first of the epoch at hand. The data "
            "does not change: epochs do not end, and what is learned is that one batch by heart. An evaluation "
            "reads its own data; the batch is copied again behind it."},
    ROW(PIPELINE_RAM_LIMIT, BYTES, "", "B")
        .steps = {"none", "64MiB", "256MiB", "1GiB", "4GiB", "16GiB", "64GiB"},
        .min = 0, .max = BYTES_MAX,
        .line = "most host memory that a run may hold for its data and what is offloaded",
        .explanation =
            "What counts is the host's ledger as a plan has it, all stages of the pipeline (source, slices, cache, shuffle, map, "
            "batches made ready, pinned ones, the held-out batch) and what offload.* keeps on the host; not counted are weights on "
            "the way to a file, libraries and the program itself. More than that is out of memory by cause pipeline: a plan and "
            "a run refuse it before the pipeline is opened, name the stage that crosses the limit, and what would "
            "fit. Exactly as much fits. none: the machine's memory is the limit."},
    ROW(COMPRESS_PRUNE, TEXT, "none", "")
        .steps = {"none", "constant:0.5", "polynomial:0.5:0.8:0:1000"},
        .line = "sparsity by update: none, constant:S, polynomial:S0:S1:BEGIN:END",
        .explanation =
            "As the TensorFlow Model Optimization Toolkit prunes: in an update of the schedule the largest weights of each kernel get "
            "a mask of 1, the others 0, and what is masked out is zero in every forward pass. constant:S:BEGIN:END:FREQUENCY "
            "keeps the sparsity S (BEGIN 0, END -1: for ever, FREQUENCY 100: updates count from 1, so that the first masks are those of update 100); polynomial:S0:S1:BEGIN:END:FREQUENCY:POWER goes from S0 to S1 by "
            "s = S1 + (S0 - S1) (1 - progress)^3. Kernels of dense, convolution (not depthwise), embedding and recurrent layers have "
            "masks, of the type and size of the kernel: 4 bytes more for each float32 weight, in training alone. Nothing gets "
            "smaller before the weights are stored compressed. Masks are made and applied behind the update, for the step that comes next, so that "
            "evaluations and saves see the zeros; where the optimizer can, the update applies them itself (execution.fuse). Where a save without masks is resumed, updates count from there, as tfmot counts them from where "
            "a trained model is wrapped. Under execution.as tensorflow what tfmot makes on the way is not held: a product as large as a "
            "kernel, and about 8 bytes a weight to sort it where a mask is made.",
        .applies = "with execution.tape once or persistent",
        .needs = {{"once persistent", HR_KNOB_EXECUTION_TAPE}}},
    ROW(COMPRESS_PRUNE_STRUCTURE, TEXT, "element", "")
        .steps = {"element", "block:4x4", "2:4", "filter"},
        .line = "what is pruned together: element, block:ROWSxCOLUMNS, N:M, filter",
        .explanation =
            "element judges each weight by its absolute value. block:4x4 judges blocks of a matrix by their mean absolute value; it "
            "takes models whose prunable kernels are all matrices, as tfmot does. 2:4 makes the 2 smallest of every 4 weights "
            "that are multiplied into one sum zero, once, at update BEGIN of compress.prune (the first), whatever sparsity that has. filter, which tfmot has not, judges what a layer makes one number of its "
            "result from by the sum of its absolute values: units of dense layers and filters of convolutions that only other layers' "
            "weights read, through activations, norms by batch, pooling, flattening and concatenation. What is added to another result, given "
            "to attention or to the loss keeps all of them. Biases, gains and depthwise kernels behind a filter become zero with it. Training is "
            "as large as before, with masks as large as the kernels; `headroom export --strip` takes the filters out, and writes a smaller model that is faster.",
        .applies = "with compress.prune constant and polynomial",
        .needs = {{"!none", HR_KNOB_COMPRESS_PRUNE}}},
    ROW(COMPRESS_LORA, INT, "", "rank")
        .steps = {"none", "4", "8", "16", "32", "64"},
        .min = 1, .max = 65536, .models = true,
        .line = "rank of the adapters that are trained in place of the weights",
        .explanation =
            "LoRA: beside each layer that compress.lora_targets names stand two thin products, and y = x·W + b + "
            "(alpha / R)·(x·A)·B. A and B alone are trained; every other parameter is frozen: it has no gradient, no "
            "optimizer state, no sum and no cast of a gradient, and below the first adapter nothing is computed backward. "
            "Running statistics of a batch norm keep moving, as PyTorch's do in train(). The activations stay: gradients go "
            "through frozen layers, and in eager mode the tape records them, and both terms of each sum y beside: two tensors of y's size for each adapter, "
            "which in GPT-2 (24 of them, batch 8) are 1.1 GiB more and eat what frozen weights save. In graph mode they are not kept. A begins uniform within 1 over the root of "
            "its features, B with zeros, as in PEFT; of a convolution A has the kernel, B is 1x1. A rank above a layer's "
            "full is allowed and pointless. A save of the model without adapters can be resumed: its weights are the base. "
            "`headroom export --merge` adds what they learned to the weights, `--adapters` writes them alone.",
        .applies = "with a model that multiplies by weights"},
    ROW(COMPRESS_LORA_ALPHA, REAL, "", "")
        .unset = "rank", .steps = {"rank", "1", "8", "16", "32", "64"},
        .min = 0.000001, .max = 1e6, .models = true,
        .line = "what the adapters' result is multiplied by, over their rank",
        .explanation =
            "Between A and B stands alpha / R. rank is Keras' default, a factor of 1 whatever the rank is: turning the rank turns "
            "nothing else. PEFT's default is 8.",
        .applies = "with compress.lora",
        .needs = {{"!none", HR_KNOB_COMPRESS_LORA}}},
    ROW(COMPRESS_LORA_TARGETS, TEXT, "auto", "")
        .models = true,
        .line = "auto, qv, qkv, attention, dense, conv, all or list:LAYER,LAYER",
        .explanation =
            "Which products get an adapter. qv: queries and values of attention, as in the paper. qkv: keys too, each with an "
            "adapter of its own; GPT-2's c_attn in PEFT has one A for the three. attention: its output too. dense: layers of that kind. conv: convolutions without groups. all: every product with "
            "weights of its own, gates of an LSTM too; a table of an embedding that serves as the output layer is none. "
            "list: the layers that are named. auto: qv, dense in a model without attention, conv in one without either.",
        .applies = "with compress.lora",
        .needs = {{"!none", HR_KNOB_COMPRESS_LORA}}},
    ROW(COMPRESS_LORA_BASE, CHOICE, "none", "")
        .choices = {"none", "int8", "int4", "nf4"},
        .models = true,
        .line = "what frozen weights beside adapters are held as: QLoRA",
        .explanation =
            "Weights that an adapter stands beside (compress.lora_targets; all for what QLoRA does) stay on the device as whole numbers and "
            "scales: int8 and int4 as Keras quantises them (a scale for each unit; a scale and a zero point for 128 rows of a unit), nf4 as "
            "bitsandbytes (16 quantiles of a normal distribution times the largest of 64 weights that follow one another as they lie here; "
            "scales are float32, not quantised once more). Each product forward, and each gradient of an input backward, makes them into a "
            "temporary of the type that is computed in, which goes with it: that is what the largest layer adds to the peak, and time. "
            "Only adapters have gradients, slots and casts. They are made of the seeded values, or of the save that is "
            "resumed; a save holds them as they are, and goes on with the same word alone.",
        .applies = "with compress.lora",
        .needs = {{"!none", HR_KNOB_COMPRESS_LORA}}},
    ROW(COMPRESS_LOW_RANK, TEXT, "none", "")
        .steps = {"none", "ratio:0.75", "ratio:0.5", "ratio:0.25", "ratio:0.1"}, .models = true,
        .line = "none, a rank or ratio:X: weights become products of thin factors",
        .explanation =
            "A dense layer of m x n becomes x·U·V + b with U of m x R and V of R x n, a 1x1 convolution the same of its "
            "channels, and a larger one Tucker-2: 1x1 to R channels, its own kernel among them, 1x1 to its filters. ratio:X "
            "gives each layer the rank at which it keeps the share X of its weights, at least 1. A layer that would not become "
            "smaller stays as it is: the break-even of m x n is the rank m·n / (m + n). Convolutions in groups and "
            "tables of embeddings stay too. A step holds one activation more for each factor: fewer weights, gradients and slots are "
            "paid with that. Factors begin normal, of the variance that the layer's own weights would have; a save of the model "
            "without low_rank that is resumed is decomposed instead (SVD, of convolutions HOSVD of their channels), its "
            "optimizer state begins anew."},
    ROW(COMPRESS_DISTILL, TEXT, "none", "")
        .models = true,
        .line = "the preset whose model teaches this one; self; none: labels alone do",
        .explanation =
            "Knowledge distillation as keras.distillation has it: the teacher's model runs beside the student's on the same batch, as "
            "in inference, and the loss is alpha times the student's own plus 1 - alpha times T^2 KL(teacher || student) of the logits over the "
            "temperature T. While training this costs memory: the teacher's weights and its forward working set come on top. What is saved at the "
            "end is the student alone. A preset by name or a file, as `extends` takes it; inputs and classes of both must be the same. self is the "
            "model itself, in another training's weights."},
    ROW(COMPRESS_DISTILL_ALPHA, REAL, "0.5", "")
        .models = true,
        .min = 0, .max = 0.999999,
        .line = "share of the student's own loss beside the teacher's",
        .explanation =
            "loss = alpha times the student's loss from labels + (1 - alpha) times the distance from the teacher. 0 learns from the teacher "
            "alone.",
        .applies = "with compress.distill",
        .needs = {{"!none", HR_KNOB_COMPRESS_DISTILL}}},
    ROW(COMPRESS_DISTILL_TEMPERATURE, REAL, "3", "")
        .models = true,
        .min = 0.01, .max = 1000,
        .line = "what logits of teacher and student are divided by before their softmax",
        .explanation =
            "More makes the teacher's answer softer, so that also what it finds less likely is learned. The distance is multiplied by the "
            "temperature's square, which keeps its gradient as large as the labels'.",
        .applies = "with compress.distill",
        .needs = {{"!none", HR_KNOB_COMPRESS_DISTILL}}},
    ROW(COMPRESS_DISTILL_WEIGHTS, TEXT, "", "")
        .line = "saved file with the teacher's weights",
        .explanation =
            "A save of a training of the teacher (train.save). \"\" takes what the teacher's preset names in train.resume; where it names "
            "nothing the teacher has seeded initial values, which teach nothing: good for bytes only. A plan needs none.",
        .applies = "with compress.distill",
        .needs = {{"!none", HR_KNOB_COMPRESS_DISTILL}}},
    ROW(COMPRESS_DISTILL_CACHE, CHOICE, "off", "")
        .choices = OFF_ON,
        .models = true,
        .line = "the teacher answers each training sample once, before the first step",
        .explanation =
            "Its logits of all training samples stay in host memory, 4 bytes for each class of each sample, and come with the batch: no step "
            "holds the teacher's weights or what it makes. The answers are made in a heap of their own, which is gone before the first "
            "step. Images that pipeline.augment changes have no one answer.",
        .applies = "with compress.distill",
        .needs = {{"!none", HR_KNOB_COMPRESS_DISTILL}}},
    ROW(COMPRESS_QUANTIZE, CHOICE, "none", "")
        .choices = {"none", "int8_weights", "int8", "int4_weights", "qat"},
        .line = "evaluate with whole-number weights as deployed, or train for them",
        .explanation =
            "int8 as Keras' model.quantize: weights with one scale for each unit, every row of the input as int8 when it comes, "
            "products in int32. int8_weights and int4_weights (two in a byte, a scale and a zero point for 128 rows of a unit) hold the weights "
            "alone so; the product is float32. A table of an embedding has scales of its rows, for int4_weights of 128 places of a row, and "
            "a lookup makes float32 of the rows that it takes; an output layer that shares the table multiplies with the same whole numbers. "
            "Convolutions stay float32, and so do learned positions, recurrent cells and experts: Keras' model.quantize leaves them "
            "too, as it has them for Dense, EinsumDense and Embedding alone. An evaluation makes the numbers of the weights that train: "
            "training is as without it, and saves nothing. What is saved is in what `headroom export --quantize` writes: a quarter or "
            "an eighth of those weights. "
            "qat is quantization-aware training as tfmot's default 8-bit scheme has it: products and convolutions read their "
            "weights, and what follows sums, products, means and activation functions is read, through copies that are rounded to 8 "
            "bits and stay float32; ranges of activations are moving averages (0.999, from -6 to 6 at first). Every copy is one "
            "more tensor, so that training takes more memory, not less: what shrinks is what is deployed."},
    ROW(MODEL_SEQUENCE, INT, "", "places")
        .min = 1, .max = MODEL_SIDE_MAX,
        .line = "length of a sample: tokens, words, steps",
        .explanation =
            "The symbolic size $sequence of the model's file: activations grow with it, the scores of materialised attention "
            "with its square. Where positions are learned, their weights have this length too. none: the model has no "
            "such size.",
        .applies = "with a model whose sizes name it"},
    ROW(MODEL_RESOLUTION, INT, "", "pixels")
        .min = 1, .max = MODEL_SIDE_MAX,
        .line = "height and width of an image",
        .explanation =
            "The symbolic size $resolution of the model's file: activations grow with its square. Layers that see the whole "
            "image (dense behind flatten, positions of patches) have weights that grow with it too. none: the model has "
            "no such size.",
        .applies = "with a model whose sizes name it"},
    ROW(MODEL_WIDTH, INT, "", "features")
        .min = 1, .max = MODEL_SIDE_MAX,
        .line = "features of a place between two blocks",
        .explanation =
            "The symbolic size $width of the model's file; what hangs on it, as the inner layer of a block, is written there "
            "as a multiple. Weights grow with its square, activations with it. none: the model has no such size.",
        .applies = "with a model whose sizes name it"},
    ROW(MODEL_DEPTH, INT, "", "blocks")
        .min = 1, .max = 256,
        .line = "blocks one behind the other",
        .explanation =
            "The symbolic size $depth of the model's file, the rounds of its repeat. Weights and activations grow with it, and "
            "checkpoint.strategy sqrt and blocks follow it. none: the model has no such size.",
        .applies = "with a model whose sizes name it"},
    ROW(TRAIN_STEPS, INT, "0", "steps")
        .min = 0, .max = 1e12, .hot = true,
        .line = "training steps to do; 0: until stopped, or 400 without a workbench",
        .explanation =
            "Counts updates from the beginning of the training, so a resumed run stops at the same step. "
            "With 0 the workbench trains until it is stopped, and `headroom run` does 400 steps."},
    ROW(TRAIN_SEED, INT, "1", "")
        .min = 0, .max = EXACT_INT_MAX,
        .line = "seed of initial weights, order of samples and generated images",
        .explanation =
            "The same seed, knobs and number of threads give the same weights bit for bit."},
    ROW(TRAIN_SAVE, TEXT, "", "")
        .hot = true,
        .line = "file to save weights, optimizer state and position to",
        .explanation =
            "A safetensors file, written whole or not at all, at the end, when interrupted, and every "
            "train.save_every steps. \"\" saves nothing. Relative paths count from the current folder."},
    ROW(TRAIN_SAVE_EVERY, INT, "0", "steps")
        .min = 0, .max = 1e12, .hot = true,
        .line = "steps between two saves; 0: only at the end and when interrupted",
        .explanation =
            "A failed step goes back to the last save, so this is also the most that can be lost.",
        .applies = "with train.save"},
    ROW(TRAIN_RESUME, TEXT, "", "")
        .line = "saved file to go on from",
        .explanation =
            "Weights, optimizer state, step, random counters and the place in the data are restored: the "
            "run goes on as if it had never stopped. \"\" begins anew."},
};
// clang-format on

_Static_assert(sizeof rows / sizeof *rows == HR_KNOB_COUNT, "one row for each knob");

const hr_knob_row *hr_knob_rows(size_t *count)
{
    if (count != NULL) {
        *count = HR_KNOB_COUNT;
    }
    return rows;
}

static const char *leaf_of(const char *key)
{
    return strchr(key, '.') + 1;
}

static const char *key_with_leaf(const char *leaf)
{
    for (size_t i = 0; leaf != NULL && i < HR_KNOB_COUNT; i++) {
        if (strcmp(leaf_of(rows[i].key), leaf) == 0) {
            return rows[i].key;
        }
    }
    return NULL;
}

// Names of a setting in other tools.
static const struct {
    const char *typed;
    hr_knob_id meant;
} elsewhere[] = {
    {"lr", HR_KNOB_OPTIMIZER_LEARNING_RATE},
    {"dtype", HR_KNOB_PRECISION_POLICY},
    {"amp", HR_KNOB_PRECISION_POLICY},
    {"fp16", HR_KNOB_PRECISION_POLICY},
    {"bf16", HR_KNOB_PRECISION_POLICY},
    {"mixed_precision", HR_KNOB_PRECISION_POLICY},
    {"gpu", HR_KNOB_DEVICE_CARD},
    {"memory", HR_KNOB_DEVICE_VRAM},
    {"gradient_checkpointing", HR_KNOB_CHECKPOINT_STRATEGY},
    {"checkpointing", HR_KNOB_CHECKPOINT_STRATEGY},
    {"remat", HR_KNOB_CHECKPOINT_STRATEGY},
    {"gradient_accumulation_steps", HR_KNOB_BATCH_ACCUMULATE},
    {"max_steps", HR_KNOB_TRAIN_STEPS},
    {"max_length", HR_KNOB_MODEL_SEQUENCE},
    {"max_seq_length", HR_KNOB_MODEL_SEQUENCE},
    {"seq_len", HR_KNOB_MODEL_SEQUENCE},
    {"block_size", HR_KNOB_MODEL_SEQUENCE},
    {"image_size", HR_KNOB_MODEL_RESOLUTION},
    {"hidden_size", HR_KNOB_MODEL_WIDTH},
    {"num_hidden_layers", HR_KNOB_MODEL_DEPTH},
    {"num_layers", HR_KNOB_MODEL_DEPTH},
    {"num_workers", HR_KNOB_PIPELINE_MAP_THREADS},
    {"pin_memory", HR_KNOB_PIPELINE_PINNED},
};

// By another tool's name, or the first of a group whose name was typed alone: the one that decides most.
static const char *named_elsewhere(const char *key)
{
    const size_t length = strlen(key);
    for (size_t i = 0; i < sizeof elsewhere / sizeof *elsewhere; i++) {
        if (strcasecmp(elsewhere[i].typed, key) == 0) {
            return rows[elsewhere[i].meant].key;
        }
    }
    for (size_t i = 0; length > 0 && i < HR_KNOB_COUNT; i++) {
        if (strncmp(rows[i].key, key, length) == 0 && rows[i].key[length] == '.') {
            return rows[i].key;
        }
    }
    return NULL;
}

// The key that was meant: one that is near as a whole, one whose last word was typed ("growth"), or one whose
// last word is near.
static const char *suggest(const char *key)
{
    const char *other = named_elsewhere(key);
    if (other != NULL) {
        return other;
    }
    const char *keys[HR_KNOB_COUNT], *leaves[HR_KNOB_COUNT];
    const char *dot = strchr(key, '.');
    const char *leaf = dot == NULL ? key : dot + 1;
    for (size_t i = 0; i < HR_KNOB_COUNT; i++) {
        keys[i] = rows[i].key;
        leaves[i] = leaf_of(rows[i].key);
    }
    const char *meant = text_nearest(key, keys, HR_KNOB_COUNT);
    meant = meant != NULL ? meant : key_with_leaf(leaf);
    return meant != NULL ? meant : key_with_leaf(text_nearest(leaf, leaves, HR_KNOB_COUNT));
}

const hr_knob_row *hr_knob_find(const char *key, const char **suggestion)
{
    if (suggestion != NULL) {
        *suggestion = NULL;
    }
    for (size_t i = 0; i < HR_KNOB_COUNT; i++) {
        if (strcmp(rows[i].key, key) == 0) {
            return &rows[i];
        }
    }
    if (suggestion != NULL) {
        *suggestion = suggest(key);
    }
    return NULL;
}
