---@meta
-- SPDX-License-Identifier: Apache-2.0
-- Written by `headroom script --stub`: what recipes can call, for the Lua language server.

---@class hr.Bytes
---@field bytes integer
---@operator add(hr.Size): hr.Bytes
---@operator sub(hr.Size): hr.Bytes
---@operator mul(number): hr.Bytes
---@operator div(number): hr.Bytes
---@operator unm: hr.Bytes

---@alias hr.Size hr.Bytes|integer|string

---@class hr.Result.device
---@field kind? string which kind of thing this is
---@field card? string the accelerator whose numbers dress the device
---@field isa? string instruction set of the CPU that the libraries chose
---@field threads? integer threads that compute
---@field simulated? boolean true when times come from the card's figures instead of a clock

---@class hr.Result.model.layers
---@field name? string what this thing is called
---@field kind? string which kind of thing this is
---@field output_shape? string shape of what a layer gives for one sample
---@field parameters? integer numbers that belong to the model, trained or not
---@field factor_error? number how far the factors of compress.low_rank are from the weights of the save, in all of a layer

---@class hr.Result.model
---@field parameters? integer numbers that belong to the model, trained or not
---@field trainable_parameters? integer numbers that training changes
---@field normalises_batches? boolean whether the model has batch normalisation: a smaller batch is another one to it
---@field layers hr.Result.model.layers[] the layers of the model, in order

---@class hr.Result.step.implementations
---@field name? string what this thing is called
---@field instructions? integer instructions in one training step

---@class hr.Result.step.fallbacks
---@field kind? string which kind of thing this is
---@field first? string the first instruction of them
---@field instructions? integer instructions in one training step
---@field of? integer all of that kind
---@field beyond_limit? integer instructions that a library does not compute because it needs more workspace than workspace.limit
---@field without_engine? integer instructions that a library does not compute because it has no engine for them
---@field without_driver? integer instructions for which a library shows no engine where there is no driver; a card may have one
---@field without_library? integer instructions that a library does not compute because it is not there
---@field known_fault? integer of a fallback: instructions where this version of the library is known to be wrong

---@class hr.Result.step.unserved
---@field first? string the first instruction of them
---@field instructions? integer instructions in one training step
---@field without_driver? integer instructions for which a library shows no engine where there is no driver; a card may have one

---@class hr.Result.step.prepared
---@field first? string the first instruction of them
---@field planned? string p: from the same program and allocator, without arithmetic; bytes are those of the run. Of an instruction: who was to compute it
---@field implementation? string who computes an instruction: a library and its engine, `own` for kernels of headroom, or an estimate
---@field instructions? integer instructions in one training step
---@field reason? string what the library said when it refused; null when it said nothing

---@class hr.Result.step.capture
---@field replays? integer steps that ran as a captured CUDA graph
---@field refusal? string why a calibration is not kept, a step not captured, batches not pinned, engines not timed; null when it is

---@class hr.Result.step.search
---@field graphs_known? integer convolutions of which a card's fastest engines are known by measured times
---@field graphs_measured? integer of these, the ones that this run timed
---@field graphs_unmeasured? integer convolutions without times: engines in the library's own order
---@field seconds? number median time of a training step; for `pack`, of the packing
---@field refusal? string why a calibration is not kept, a step not captured, batches not pinned, engines not timed; null when it is

---@class hr.Result.step
---@field instructions? integer instructions in one training step
---@field effective_batch? integer samples that one change of the weights sees
---@field flops? integer floating-point operations of one training step, a multiply-add counted as two
---@field seconds? number median time of a training step; for `pack`, of the packing
---@field seconds_low? number what an estimated step takes at least, as a rule
---@field seconds_high? number what an estimated step takes at most, as a rule
---@field seconds_source? string whether seconds were measured or simulated
---@field seconds_basis? string basis of an estimated step time: calibration, datasheet, usual_card, usual_cores, usual_loops
---@field implementations hr.Result.step.implementations[] the libraries that compute a step, each with its instructions
---@field fallbacks hr.Result.step.fallbacks[] of each kind of operation, what kernels of our own compute because a library refused it
---@field unserved hr.Result.step.unserved|nil convolutions of PyTorch's without a workspace, as cuDNN has no engine for them
---@field prepared hr.Result.step.prepared[] instructions that the card computes otherwise than was planned; empty when all is as planned
---@field unplanned? integer instructions that the card computes otherwise than was planned
---@field capture hr.Result.step.capture|nil what became of taking steps up into a CUDA graph; null where nothing asks for it
---@field search hr.Result.step.search|nil what became of timing cuDNN's engines; null where nothing asks for it

---@class hr.Result.memory.workspaces
---@field instruction? integer index of an instruction in the step program
---@field name? string what this thing is called
---@field implementation? string who computes an instruction: a library and its engine, `own` for kernels of headroom, or an estimate
---@field bytes? hr.Bytes requested bytes of a tensor

---@class hr.Result.memory.at_peak.workspace
---@field instruction? integer index of an instruction in the step program
---@field name? string what this thing is called
---@field implementation? string who computes an instruction: a library and its engine, `own` for kernels of headroom, or an estimate
---@field bytes? hr.Bytes requested bytes of a tensor
---@field less_limit_bytes? hr.Bytes workspace.limit without the workspace at the peak that leaves all smaller ones as they are
---@field less_bytes? hr.Bytes what less_implementation needs instead of the workspace at the peak
---@field less_implementation? string who computes what takes the workspace at the peak, under workspace.limit=less_limit_bytes

---@class hr.Result.memory.at_peak.tensors
---@field name? string what this thing is called
---@field category? string what a tensor is there for
---@field dtype? string type of the elements
---@field shape? string extents of a tensor, batch first
---@field bytes? hr.Bytes requested bytes of a tensor

---@class hr.Result.memory.at_peak
---@field instruction? integer index of an instruction in the step program
---@field name? string what this thing is called
---@field phase? string part of the step: build, input, forward, backward, update
---@field by_category? table<string, hr.Bytes> requested bytes at the peak, for each category
---@field workspace hr.Result.memory.at_peak.workspace|nil scratch of one operation, released when it ends; `temporaries` on screens
---@field opaque_bytes? hr.Bytes what is alive at the peak only because opaque layers are thought to keep all that they read and give
---@field tensors hr.Result.memory.at_peak.tensors[] the tensors alive at the peak, largest first

---@class hr.Result.memory
---@field limit_bytes? hr.Bytes the most that the pool may become: the capped card
---@field peak_pool_bytes? hr.Bytes the largest pool of the training steps
---@field peak_in_use_bytes? hr.Bytes the largest in_use of the training steps
---@field peak_requested_bytes? hr.Bytes requested bytes at the moment of the largest in_use
---@field waste_bytes? hr.Bytes lost to rounding inside the chunks handed out
---@field saved_for_backward_bytes? hr.Bytes what forward keeps for backward, each storage once: x, logits and softmax counted; weights, labels, statistics and workspaces not
---@field library_saved_bytes? hr.Bytes what a library itself carries from forward to backward
---@field static_bytes? hr.Bytes what is there in every step, whatever the batch
---@field largest_free_bytes? hr.Bytes the largest free piece in one piece
---@field fragmentation? number how much of the free pool is not in its largest piece; 0 when nothing is free
---@field heap_hash? string hash of every chunk's address, size and state at a step boundary; when it repeats, so does the heap
---@field workspaces hr.Result.memory.workspaces[] the largest scratch buffers of a step, each with who asks for it
---@field at_peak hr.Result.memory.at_peak|nil the first moment of the largest in_use

---@class hr.Result.evaluation
---@field peak_in_use_bytes? hr.Bytes the largest in_use of the training steps

---@class hr.Result.answers
---@field peak_in_use_bytes? hr.Bytes the largest in_use of the training steps

---@class hr.Result.deploy
---@field stripped_bytes? hr.Bytes weights and running statistics of the model alone: what training adds is gone, and a teacher
---@field deployed_bytes? hr.Bytes of a tensor, or of the model, as deployed: without filters that are pruned in the end, and with whole numbers and scales where compress.quantize asks

---@class hr.Result.driver
---@field outside_bytes? hr.Bytes what our context and libraries took of the card at start, beside the pool
---@field process_bytes? hr.Bytes what the driver counts for this process: pool, context and libraries
---@field others_bytes? hr.Bytes what the driver counts for everybody else on the card

---@class hr.Result.transfer
---@field h2d_bytes_per_step? hr.Bytes bytes copied from the host to the device in one step
---@field resident? boolean one batch stays on the device, and no step copies another: the data does not change

---@class hr.Result.host.stages
---@field name? string what this thing is called
---@field peak_bytes? hr.Bytes the largest value that this count of bytes took
---@field busy_seconds? number of a pipeline's stage at work since its chain was opened, summed over its threads; null in a plan
---@field wait_seconds? number of a pipeline's stage waiting for room to make the next item in, since its chain was opened; null in a plan

---@class hr.Result.host
---@field peak_bytes? hr.Bytes the largest value that this count of bytes took
---@field measured? boolean m: read from a clock or a counter of a real run
---@field input_seconds? number estimated time to make the batches of a step, from what a sample of its source costs a core; null of a run
---@field stall? number estimated share of a step in which training waits for its batches: more than 0 is input-bound; null of a run
---@field stages hr.Result.host.stages[] the steps of the input pipeline, in order
---@field unknown? string why the host memory of a plan is not known: its data set cannot be read
---@field bad_samples? integer samples that could not be read and were replaced, each time they were given out, and names and folders that were passed over (pipeline.bad)
---@field refusal? string why a calibration is not kept, a step not captured, batches not pinned, engines not timed; null when it is

---@class hr.Result.train
---@field steps? integer training steps done
---@field updates? integer times the weights were changed
---@field skipped_steps? integer steps that updated nothing, because a gradient was not finite
---@field loss_scale? number factor on the loss that keeps float16 gradients in range; null where none changes
---@field examples_per_second? number training samples finished in a second
---@field loss_first? number loss of the first training step
---@field loss_last? number loss of the last training step
---@field loss_student? number of the last training step, the loss from the labels, before it is weighted (compress.distill)
---@field loss_distill? number of the last training step, the distance of the logits from the teacher's, before it is weighted
---@field eval_accuracy? number accuracy on the held-out samples after the last epoch
---@field sparsity? number the share of the elements of a tensor that are zero
---@field weights_sha256? string SHA-256 over the bytes of all weights and state in canonical order; equal means bit-identical
---@field data? string where the samples came from; `generated` is our own image set

---@class hr.Result.plan
---@field seconds_median? number median time of one plan of --repeat
---@field seconds_max? number longest time of one plan of --repeat
---@field distinct_peaks? integer how many different peaks the plans of --repeat had

---@class hr.Result.oom.evidence
---@field sentence? string which thing failed, what it needed and what it had

---@class hr.Result.oom.fixes
---@field knobs? string[] settings, as group.key and value
---@field cost? string what a setting changes about what is learned, and how much longer a step takes with it
---@field peak_bytes? hr.Bytes the largest value that this count of bytes took
---@field limit_bytes? hr.Bytes the most that the pool may become: the capped card
---@field host_bytes? hr.Bytes host bytes that one stage of the pipeline holds; of a fix, all of them
---@field seconds? number median time of a training step; for `pack`, of the packing
---@field seconds_basis? string basis of an estimated step time: calibration, datasheet, usual_card, usual_cores, usual_loops

---@class hr.Result.oom
---@field cause? string why memory ran out: capacity, fragmentation, rounding, outside, limit, leak or pipeline
---@field tensor? string the tensor concerned, as layer/role; out of the host's memory, the stage that crosses its limit
---@field instruction? integer index of an instruction in the step program
---@field name? string what this thing is called
---@field requested_bytes? hr.Bytes bytes that the program asked for
---@field free_bytes? hr.Bytes what the allocator could still have handed out
---@field largest_free_bytes? hr.Bytes the largest free piece in one piece
---@field in_use_bytes? hr.Bytes bytes of the chunks handed out, rounding included
---@field pool_bytes? hr.Bytes bytes that the allocator holds from the device, used or not
---@field limit_bytes? hr.Bytes the most that the pool may become: the capped card
---@field needed_bytes? hr.Bytes the smallest limit that was tried and holds it; null when none does, or it is not known
---@field by_category? table<string, hr.Bytes> requested bytes at the peak, for each category
---@field sentence? string which thing failed, what it needed and what it had
---@field try? string a complete command or key that works
---@field evidence hr.Result.oom.evidence[] what shows the cause of an out-of-memory: the numbers of the refusal, what grows, what waits
---@field fixes hr.Result.oom.fixes[] settings that would fit, each with its peak and step time

---@class hr.Result
---@field fits boolean it did not run out of memory
---@field preset? string the model and the set of knobs
---@field device hr.Result.device|nil what computes: cpu, cuda, plan or reference
---@field model hr.Result.model|nil the layers and their parameters
---@field step hr.Result.step|nil one training step: a batch through forward, backward and update
---@field memory hr.Result.memory|nil the counters of the training steps; evaluation is apart
---@field evaluation hr.Result.evaluation|nil the program that measures on held-out samples: no tape, running statistics
---@field answers hr.Result.answers|nil a teacher's logits of all training samples, made before the first step (compress.distill_cache)
---@field deploy hr.Result.deploy|nil what of the model is left where it is used
---@field driver hr.Result.driver|nil the driver's view, outside `memory`; null without a card
---@field transfer hr.Result.transfer|nil what is copied between host and device
---@field host hr.Result.host|nil host memory of the input pipeline and of what is offloaded, planned to the byte as well as measured
---@field train hr.Result.train|nil what training did
---@field plan hr.Result.plan|nil the step program played on the allocator without arithmetic
---@field oom hr.Result.oom|nil the first out-of-memory; null when there was none

---@class hr.Knobs.device
---@field kind '"cpu"'|'"cuda"'|'"plan"'|'"reference"' what runs the step program
---@field card string the card whose memory and speed the device takes on
---@field vram hr.Size the allocator's limit itself, whatever the card has
---@field logical string sizes of logical devices that share the card; the step has the first

---@class hr.Knobs.allocator
---@field kind '"bfc"'|'"caching"'|'"async"'|'"direct"'|'"static"'|'"async_driver"' how device memory is handed out
---@field growth boolean take memory in growing regions instead of all at once
---@field fraction number share of the card's whole memory that the allocator may take
---@field garbage_collection boolean give wholly free regions back before running out of memory
---@field release_threshold hr.Size bytes that the pool keeps when a step ends; the rest is given back
---@field max_split hr.Size blocks from this size on are never split, and kept for requests as large
---@field max_non_split_rounding hr.Size how much larger than asked for an unsplit block may be
---@field large_segment hr.Size what the driver is asked for when a block of 1 to 10 MiB is wanted
---@field gc_threshold number share of the limit above which long unused segments are given back
---@field expandable_segments boolean segments that grow in place instead of a new one for each larger block
---@field roundup string steps between two powers of two that sizes are rounded up to
---@field conf string PyTorch's own configuration, as in PYTORCH_ALLOC_CONF
---@field version '"2.13"'|'"2.12"'|'"2.11"' PyTorch's version whose order of free blocks is followed

---@class hr.Knobs.batch
---@field size integer samples in memory at once
---@field accumulate integer batches whose gradients are added up before one update
---@field remainder '"drop"'|'"keep"'|'"pad"' what becomes of the last samples of an epoch that fill no batch

---@class hr.Knobs.precision
---@field policy '"float32"'|'"mixed_float16"'|'"mixed_bfloat16"'|'"float16"'|'"bfloat16"'|'"float64"' number type of weights, activations and gradients
---@field loss_scale string factor that keeps float16 gradients in range: dynamic, none, a number
---@field loss_scale_floor '"none"'|'"one"' smallest dynamic loss scale
---@field tf32 boolean let float32 products round their operands to TF32
---@field health boolean count gradients that float16 would flush to zero or overflow

---@class hr.Knobs.checkpoint
---@field strategy string which results are dropped in forward and computed again for backward

---@class hr.Knobs.offload
---@field activations boolean what backward waits for is put into host memory and fetched again
---@field optimizer boolean optimizer state lives in host memory and comes for its update only
---@field prefetch integer instructions between a copy and the one that needs it done

---@class hr.Knobs.execution
---@field as '"headroom"'|'"pytorch"'|'"tensorflow"' whose rules decide what an eager step holds
---@field answer '"named"'|'"dropped"' whether the training loop has a name for what the model answered
---@field memory_format '"contiguous"'|'"channels_last"' how PyTorch's images lie, for cuDNN's workspaces
---@field cudnn_tf32 boolean torch.backends.cudnn.allow_tf32, for cuDNN's workspaces
---@field mode '"eager"'|'"graph"' how long tensors live
---@field fuse boolean compute an activation inside the operation before it
---@field inplace boolean let a result take the bytes of an operand that is needed no more
---@field deterministic boolean use only kernels that give the same bits every time
---@field cuda_graph boolean capture a steady step into a CUDA graph and replay it
---@field tape '"none"'|'"once"'|'"persistent"' what is recorded for the gradients, and how long it is kept
---@field retain '"none"'|'"losses"'|'"predictions"'|'"variables"' a leak on purpose: what every step leaves behind

---@class hr.Knobs.optimizer
---@field kind '"sgd"'|'"momentum"'|'"rmsprop"'|'"adam"'|'"adamw"'|'"adafactor"'|'"adafactor_keras"'|'"lion"'|'"adam8bit"' how weights follow the gradients
---@field learning_rate number size of a step along the gradient
---@field momentum number share of the last update that goes into the next
---@field form '"keras"'|'"torch"' whose Adam: where epsilon stands, and its default
---@field implementation '"foreach"'|'"loop"'|'"fused"' how PyTorch's optimizer goes through the weights
---@field beta1 number share of the first moment that an update keeps; rmsprop: of the only one
---@field beta2 number share of the second moment that an update keeps
---@field epsilon number what is added to the root that an update is divided by
---@field fused_backward boolean update a weight as soon as its gradient is there, and free the gradient
---@field weight_decay number share of every weight that an update takes away, times the learning rate
---@field clip_norm number largest norm of all gradients together; larger ones are scaled down to it
---@field ema number keep an average of every weight: the share of it that an update leaves
---@field schedule '"none"'|'"cosine"'|'"linear"'|'"step"' how the learning rate falls from update to update
---@field schedule_updates integer updates that the schedule takes, or between two of its steps
---@field schedule_factor number share of the learning rate at the end of the schedule, or left by each step
---@field warmup integer first updates, over which the learning rate rises from zero

---@class hr.Knobs.workspace
---@field limit hr.Size most scratch memory that one operation may take
---@field search boolean take the engine of a convolution or attention measured to be the fastest

---@class hr.Knobs.threads
---@field count integer threads that compute; 0: one for each core

---@class hr.Knobs.pipeline
---@field source '"auto"'|'"generated"'|'"cifar10"'|'"mnist"'|'"images"'|'"npy"'|'"tfrecord"'|'"tokens"'|'"text"'|'"csv"' where the samples come from
---@field path string folder or archive with the samples
---@field resize '"bilinear"'|'"nearest"'|'"area"' how images of another size become the model's
---@field bad '"stop"'|'"skip"' what becomes of a sample that cannot be read
---@field filter string only samples of these classes: label:0,1,7
---@field samples integer training samples that are taken: the first so many
---@field array '"off"'|'"uint8"'|'"float32"'|'"float64"' the training set is held as one array in host memory
---@field mode '"stream"'|'"eager_stack"' how pipeline.array is made: sample by sample in its place, or by a list
---@field stages string what samples pass through, in this order
---@field interleave integer files that samples are taken from in turn; 1: one file after the other
---@field interleave_block integer samples that one file gives before the next one's turn, with pipeline.interleave
---@field augment string what is done at random to training images, in this order
---@field augment_copies integer variants of each image, made before training
---@field cache '"none"'|'"ram"'|'"file"' training samples that were read are kept for the next epoch
---@field cache_path string folder for the cache's file
---@field shuffle integer samples in the shuffle buffer; 0: file order
---@field shuffle_of '"indices"'|'"elements"' what waits in the shuffle buffer
---@field map_threads integer threads that make the samples of a batch; 0: as many as it is worth
---@field normalise '"host"'|'"device"' where the bytes of an image become numbers between 0 and 1
---@field transfer '"auto"'|'"float32"'|'"float64"' number type in which images that the host normalised travel
---@field prefetch integer batches made ready ahead of the step; 0: made when asked for
---@field autotune '"off"'|'"headroom"'|'"tensorflow"' who decides what is auto of pipeline.map_threads and pipeline.prefetch
---@field pinned '"on"'|'"off"' batches for a card are made in pinned memory
---@field device_prefetch integer batches copied to the device ahead of the step; 0: copied when the step begins
---@field resident boolean one batch stays on the device: every step trains on it
---@field ram_limit hr.Size most host memory that a run may hold for its data and what is offloaded

---@class hr.Knobs.compress
---@field prune string sparsity by update: none, constant:S, polynomial:S0:S1:BEGIN:END
---@field prune_structure string what is pruned together: element, block:ROWSxCOLUMNS, N:M, filter
---@field lora integer rank of the adapters that are trained in place of the weights
---@field lora_alpha number what the adapters' result is multiplied by, over their rank
---@field lora_targets string auto, qv, qkv, attention, dense, conv, all or list:LAYER,LAYER
---@field lora_base '"none"'|'"int8"'|'"int4"'|'"nf4"' what frozen weights beside adapters are held as: QLoRA
---@field low_rank string none, a rank or ratio:X: weights become products of thin factors
---@field distill string the preset whose model teaches this one; self; none: labels alone do
---@field distill_alpha number share of the student's own loss beside the teacher's
---@field distill_temperature number what logits of teacher and student are divided by before their softmax
---@field distill_weights string saved file with the teacher's weights
---@field distill_cache boolean the teacher answers each training sample once, before the first step
---@field quantize '"none"'|'"int8_weights"'|'"int8"'|'"int4_weights"'|'"qat"' evaluate with whole-number weights as deployed, or train for them

---@class hr.Knobs.model
---@field sequence integer length of a sample: tokens, words, steps
---@field resolution integer height and width of an image
---@field width integer features of a place between two blocks
---@field depth integer blocks one behind the other

---@class hr.Knobs.train
---@field steps integer training steps to do; 0: until stopped, or 400 without a workbench
---@field seed integer seed of initial weights, order of samples and generated images
---@field save string file to save weights, optimizer state and position to
---@field save_every integer steps between two saves; 0: only at the end and when interrupted
---@field resume string saved file to go on from

---@class hr.Knobs
---@field device hr.Knobs.device
---@field allocator hr.Knobs.allocator
---@field batch hr.Knobs.batch
---@field precision hr.Knobs.precision
---@field checkpoint hr.Knobs.checkpoint
---@field offload hr.Knobs.offload
---@field execution hr.Knobs.execution
---@field optimizer hr.Knobs.optimizer
---@field workspace hr.Knobs.workspace
---@field threads hr.Knobs.threads
---@field pipeline hr.Knobs.pipeline
---@field compress hr.Knobs.compress
---@field model hr.Knobs.model
---@field train hr.Knobs.train
---@field [string] any

---@alias hr.EventName '"alloc"'|'"before_update"'|'"epoch"'|'"epoch_begin"'|'"evaluation"'|'"nonfinite"'|'"oom"'|'"rebuild"'|'"save"'|'"scale"'|'"step"'|'"step_begin"'|'"train_begin"'|'"train_end"'

---@class hr.Now
---@field learning_rate number of the next update
---@field steps_per_epoch integer|nil of an epoch of data, from its first sample on; nil where no data is read
---@field loss_scale number|nil of the last step; nil where none is used
---@field in_use_bytes hr.Bytes|nil bytes of the chunks handed out, rounding included
---@field pool_bytes hr.Bytes|nil bytes that the allocator holds from the device, used or not
---@field largest_free_bytes hr.Bytes|nil the largest free piece of the pool
---@field fragmentation number|nil share of the pool's free bytes that are not in the largest piece
---@field by_category table<string, hr.Bytes> requested bytes, for each category

---@class hr.event.alloc: hr.Now
---@field step integer training steps done before it
---@field requested_bytes hr.Bytes bytes that the program asked for
---@field allocated_bytes hr.Bytes bytes of the chunk that it got
---@field category string of the tensor: weights, activations, …
---@field phase string forward, backward, update, build
---@field in_use_bytes hr.Bytes behind it
---@field pool_bytes hr.Bytes behind it

---@class hr.event.before_update: hr.Now
---@field step integer number of the step, from 1 on
---@field gradient_norm number|nil root of the sum of the squares of all gradients, unscaled and not clipped yet; computed when it is read, while the callback runs. nil where nothing is computed, with optimizer.fused_backward, and where steps are captured

---@class hr.event.epoch: hr.Now
---@field epoch integer epochs that have ended
---@field step integer training steps done
---@field loss number|nil of the last step
---@field eval_loss number|nil on what is held out
---@field eval_accuracy number|nil on what is held out

---@class hr.event.epoch_begin: hr.Now
---@field step integer training steps done

---@class hr.event.evaluation: hr.Now
---@field step integer training steps done
---@field eval_loss number|nil on what is held out
---@field eval_accuracy number|nil on what is held out
---@field samples integer that were evaluated

---@class hr.event.nonfinite: hr.Now
---@field step integer number of the step
---@field loss number of the step: may be infinite or not a number
---@field skipped boolean its update did not happen, as a gradient was not finite (precision.loss_scale)

---@class hr.event.rebuild: hr.Now
---@field step integer training steps done
---@field instructions integer of the step program that is new

---@class hr.event.save: hr.Now
---@field step integer training steps done
---@field path string of the file; a long one is cut

---@class hr.event.scale: hr.Now
---@field step integer number of the step
---@field skipped_steps integer steps that updated nothing, because a gradient was not finite

---@class hr.event.step: hr.Now
---@field step integer number of the step, from 1 on
---@field loss number|nil nil where nothing is computed, or when it is not finite
---@field samples integer of the step
---@field seconds number that it took; simulated on the device plan
---@field wait_seconds number of them, waiting for data
---@field examples_per_second number|nil training samples a second
---@field peak_in_use_bytes hr.Bytes largest in use within the step
---@field floor_in_use_bytes hr.Bytes smallest in use within the step
---@field gradient_norm number|nil that of before_update, where the option `gradient_norm` asks for it

---@class hr.event.step_begin: hr.Now
---@field step integer number of the step, from 1 on

---@class hr.event.train_begin: hr.Now
---@field step integer training steps done before

---@class hr.event.train_end: hr.Now
---@field step integer training steps done
---@field loss number|nil of the last step

---@class hr.Handler
local Handler = {}
--- The function is not called any more.
function Handler:off() end

---@class hr.export.Options
---@field columns? string[] of a .csv, in their order; "memory.peak_in_use_bytes" is a field of a table. Without it all plain ones

---@class hr.fit.Options
---@field keep? string what may not change: "batch,precision", a group or a key; without it all but the optimizer may
---@field [string] any a knob, or a group of knobs

---@class hr.model.Options
---@field layers? table[] one table a layer, with kind and what that takes (headroom manual headroom-presets.5), or with repeat, index and layers
---@field input? table of one sample: {shape = {height, width, channels}}; inputs = {…} where there are several
---@field inputs? table[] each with name, type, classes and shape
---@field classes? integer of the labels
---@field labels? table where classes is too little to say: type, shape, classes
---@field loss? string|table such as "softmax_cross_entropy"
---@field losses? table[] where there are several
---@field sizes? table<string, integer> what $name stands for in the layers; they are the knobs hr.knobs.model.name
---@field defaults? table<string, table> of a kind of layer: what each has that says nothing else
---@field name? string of the model
---@field like? string the name of a preset whose model it is, in place of layers; sizes beside it
---@field widths? table<string, integer> layers that are narrower than the model says, by their names

---@class hr.on.Options
---@field above? hr.Size of "alloc": the smallest request that is told of
---@field gradient_norm? boolean of "step": its table has the norm of the gradients, which is computed in every step then

---@class hr.plan.Options
---@field steps? integer that are planned; 3 without it, behind which nothing changes any more
---@field [string] any a knob, or a group of knobs

---@class hr.plot.Options
---@field x? number[] of every point
---@field y? table a list of numbers or sizes, or up to six of them by their names
---@field title? string above it
---@field label? string of x
---@field log_x? boolean x is drawn by its logarithm
---@field log_y? boolean y is, and what is not above 0 is left out

---@class hr.replay.Options
---@field allocators? string[] on which it is played; all of them without it
---@field [string] any a knob, or a group of knobs

---@class hr.run.Options
---@field steps? integer training steps to do from here; train.steps without it
---@field epochs? integer ends behind as many epochs, from wherever it stands in the one under way, and behind steps at the latest where both are named
---@field until_oom? boolean out of memory is how the run may end, and no error
---@field fresh? boolean begin anew, from new weights
---@field [string] any a knob, or a group of knobs

---@class hr.sweep.Options
---@field steps? integer that each combination is trained; only planned without it

---@class hr.weights.Options
---@field values? boolean each has the list values: hr.set_weights takes such a one

---@class hr
hr = {}

---version of this table; it grows when a name changes its meaning
---@type integer
hr.api_version = nil

---turns the knobs of a fix of result.oom.fixes, of a way of hr.fit, or of a list of "key=value"
---@param fix table|string[]
function hr.apply(fix) end

---the words behind the recipe's name; in the workbench `preset` of it is what is on the screen
---@type string[]|{preset: string?}
hr.args = nil

---a size from a number or a text: compares and adds with both, prints for people, has the number in .bytes
---@param size hr.Size
---@return hr.Bytes
function hr.bytes(size) end

---where two results differ: a list of rows with name, a, b and change, which prints as a table
---@param a hr.Result
---@param b hr.Result
---@return table[]
function hr.compare(a, b) end

---evaluates the samples that are held out with the weights at hand: eval_loss, eval_accuracy, samples
---@return table
function hr.eval() end

---ends the recipe with exit code 1 when the condition is false or nil; gives the condition
---@param condition any
---@param message? string
---@return any
function hr.expect(condition, message) end

---why the preset, or a recorded trace or a scenario, runs out of memory: the names are those of `oom` in `headroom explain --json`, with fits, which is true where they are nil; hr.plan and hr.run take the knobs of a fix, the cheapest first
---@param trace? string|table
---@param options? table
---@return table
function hr.explain(trace, options) end

---writes a list of tables as .csv, any value as .json, a plot as .svg, a text as .txt or .md, below ./headroom-out, where a file of that name gives way, and gives the path
---@param path string
---@param value any
---@param options? hr.export.Options
---@return string
function hr.export(path, value, options) end

---searches for the fastest knobs that fit, all else as it is but for what may be turned; the names in the table are those of `headroom fit --json`, and a way's knobs are a list of "key=value"
---@param options? hr.fit.Options
---@return table
function hr.fit(options) end

---whether there is such a name of hr, or such a knob: no error where there is none
---@param name string
---@return boolean
function hr.has(name) end

---every setting of `headroom knobs`, read and turned as hr.knobs.group.key, in a callback from the next step on; pairs(hr.knobs) and pairs(hr.knobs.batch) go through them
---@type hr.Knobs
hr.knobs = nil

---the next run, or this one from its next step on, goes on from a save: train.resume is the knob
---@param path string
function hr.load(path) end

---the model at hand as a table, in the words of a preset, with figures: a list of its layers, repeats written out, with name, kind, output_shape, parameters, parameter_bytes (float32) and output_bytes (of one sample); prints as these. With a table the recipe's model is that one from here on; knobs stay, but for the sizes
---@param model? hr.model.Options
---@return table
function hr.model(model) end

---a line on stderr, or in the log of the workbench
---@param text any
function hr.note(text) end

---calls the function with a table at every such event of the training (the events are below); what it gives takes the function away again with h:off(), and nil in the function's place takes all of the event's away
---@param event hr.EventName
---@param fn function|nil
---@param options? hr.on.Options
---@return hr.Handler
---@overload fun(event: '"alloc"', fn: fun(e: hr.event.alloc): any): hr.Handler
---@overload fun(event: '"before_update"', fn: fun(e: hr.event.before_update): any): hr.Handler
---@overload fun(event: '"epoch"', fn: fun(e: hr.event.epoch): any): hr.Handler
---@overload fun(event: '"epoch_begin"', fn: fun(e: hr.event.epoch_begin): any): hr.Handler
---@overload fun(event: '"evaluation"', fn: fun(e: hr.event.evaluation): any): hr.Handler
---@overload fun(event: '"nonfinite"', fn: fun(e: hr.event.nonfinite): any): hr.Handler
---@overload fun(event: '"oom"', fn: fun(e: hr.Result.oom): any): hr.Handler
---@overload fun(event: '"rebuild"', fn: fun(e: hr.event.rebuild): any): hr.Handler
---@overload fun(event: '"save"', fn: fun(e: hr.event.save): any): hr.Handler
---@overload fun(event: '"scale"', fn: fun(e: hr.event.scale): any): hr.Handler
---@overload fun(event: '"step"', fn: fun(e: hr.event.step): any): hr.Handler
---@overload fun(event: '"step_begin"', fn: fun(e: hr.event.step_begin): any): hr.Handler
---@overload fun(event: '"train_begin"', fn: fun(e: hr.event.train_begin): any): hr.Handler
---@overload fun(event: '"train_end"', fn: fun(e: hr.event.train_end): any): hr.Handler
function hr.on(event, fn, options) end

---what a run with these knobs would take, to the byte, without running; result.fits is false when it would not fit
---@param options? hr.plan.Options
---@return hr.Result
function hr.plan(options) end

---draws lines over x: prints as letters of 78 columns, has .text and .svg; sizes and numbers alike
---@param options hr.plot.Options
---@return table
function hr.plot(options) end

---the model and the knobs to work with, and gives its name; a path counts from the recipe's folder
---@param name_or_path string
---@return string
function hr.preset(name_or_path) end

---plays a recorded trace, or a scenario by its name, on each of the allocators; the names in the table are those of `headroom replay --json`
---@param trace string
---@param options? hr.replay.Options
---@return table
function hr.replay(trace, options) end

---a generator of random numbers of its own: r() in [0, 1), r(n) of 1 to n, r(low, high); of one seed the same everywhere
---@param seed? integer
---@return fun(low?: integer, high?: integer): number
function hr.rng(seed) end

---trains, and goes on with the weights of the run before, from new ones at first; steps and losses of the result are those of the whole training. Out of memory is an error, with until_oom it is how the run may end
---@param options? hr.run.Options
---@return hr.Result
function hr.run(options) end

---writes the training, weights and all, to a file below ./headroom-out, and gives its path
---@param path string
---@return string
function hr.save(path) end

---the elements of one weight become these numbers, row by row, or all of them this one number, from the next step on; what the optimizer keeps beside it stays. On devices that compute
---@param name string
---@param values number|number[]
function hr.set_weights(name, values) end

---ends the run after the step whose callback calls it
function hr.stop() end

---plans every combination, and trains each that fits where steps are given, from new weights, while the recipe's own training waits: a list of rows with the knobs, fits, peak_in_use_bytes, seconds, cause; of a run run_peak_in_use_bytes, run_seconds, loss_last, examples_per_second; the whole results as plan and run; or error, where the combination is refused. A row that does not fit has no peak: plan.oom.needed_bytes is what it needs
---@param axes table<string, any[]>
---@param options? hr.sweep.Options
---@return table[]
function hr.sweep(axes, options) end

---seconds since the recipe began
---@return number
function hr.time() end

---the weights of the training, or those whose names have the part in them: name, shape, elements, norm, mean, least, most, zeros, nonfinite, and a histogram of 16 equal parts from least to most; with values their elements, row by row
---@param part? string
---@param options? hr.weights.Options
---@return table[]
function hr.weights(part, options) end

---calls the function with these knobs and gives what it gives; afterwards, also after an error, all knobs are as before
---@param knobs table
---@param fn fun(): ...
---@return any
function hr.with(knobs, fn) end

