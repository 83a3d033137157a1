// SPDX-License-Identifier: Apache-2.0
// Kernels of our own: fat binaries inside the program, loaded when the first of their kernels is asked for.
#include <string.h>

#include "device_impl.h"
#include "kernels/group_args.h"

#define X(name) extern const unsigned char hr_cuda_##name[];
#include "cuda_modules.inc"
#undef X

static const struct {
    const char *name;
    const unsigned char *image;
} images[] = {
#define X(name) {#name, hr_cuda_##name},
#include "cuda_modules.inc"
#undef X
};
enum {
    IMAGES = sizeof images / sizeof *images,
    SHARED_WITHOUT_ASKING = 48 * 1024, // dynamic shared memory that every kernel may have
    WAVES = 4,                         // blocks for every place on the card
    THREADS_PER_PROCESSOR = 2048,
};
_Static_assert((int)IMAGES <= (int)CUDA_MODULES_MAX, "cuda_device.module has room for every file");

static hr_status load_module(cuda_device *device, uint32_t k, hr_err *err)
{
    if (device->module[k] != NULL) {
        return HR_OK;
    }
    const hr_status status = cuda_check(cuda_driver.cuModuleLoadData(&device->module[k], images[k].image),
                                        err, "loading the kernels of %s", images[k].name);
    if (status != HR_OK) {
        device->module[k] = NULL;
        if (status == HR_DEVICE) {
            hr_err_try(err,
                       "headroom devices; this build's kernels are for other cards: build with "
                       "-DHEADROOM_CUDA_ARCHITECTURES=%u%u",
                       device->traits.compute_major, device->traits.compute_minor);
        }
    }
    return status;
}

hr_status cuda_function(cuda_device *device, const char *module, const char *name, CUfunction *out,
                        hr_err *err)
{
    *out = NULL;
    for (uint32_t k = 0; k < IMAGES; k++) {
        if (strcmp(images[k].name, module) == 0) {
            HR_TRY(load_module(device, k, err));
            HR_TRY(cuda_check(cuda_driver.cuModuleGetFunction(out, device->module[k], name), err,
                              "finding kernel %s in %s", name, module));
            // Else its code would look for memory at the first launch, when the heap may have all of it.
            return cuda_check(cuda_driver.cuFuncLoad(*out), err, "loading kernel %s", name);
        }
    }
    return HR_FAIL(err, DEVICE, "kernel %s: this build has no module %s", name, module);
}

void cuda_kernels_close(cuda_device *device)
{
    for (uint32_t k = 0; k < IMAGES; k++) {
        if (device->module[k] != NULL) {
            (void)cuda_driver.cuModuleUnload(device->module[k]);
        }
    }
}

// A kernel's limit is its own, not a launch's: it only rises, so that what a graph holds keeps what it was captured with.
static hr_status allow_shared(CUfunction function, uint32_t bytes, hr_op op, hr_err *err)
{
    static const CUfunction_attribute limit = CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
    int allowed = 0;
    HR_TRY(CUDA_CALL(err, cuFuncGetAttribute, &allowed, limit, function));
    return (int64_t)allowed >= (int64_t)bytes
               ? HR_OK
               : cuda_check(cuda_driver.cuFuncSetAttribute(function, limit, (int)bytes), err,
                            "%u B of shared memory for %s", bytes, op_name(op));
}

hr_status cuda_launch(const cuda_run *r, CUfunction function, cuda_grid grid, const void *arguments,
                      uint32_t bytes, hr_err *err)
{
    (void)bytes; // the kernel knows them
    void *parameters[] = {(void *)(uintptr_t)arguments};
    if (grid.shared_bytes > SHARED_WITHOUT_ASKING) {
        HR_TRY(allow_shared(function, grid.shared_bytes, (hr_op)r->instr->op, err));
    }
    return cuda_check(cuda_driver.cuLaunchKernel(function, grid.blocks_x,
                                                 grid.blocks_y == 0 ? 1 : grid.blocks_y,
                                                 grid.blocks_z == 0 ? 1 : grid.blocks_z, grid.threads, 1, 1,
                                                 grid.shared_bytes, r->stream, parameters, NULL),
                      err, "launching %s", op_name(r->instr->op));
}

cuda_grid cuda_grid_over(const cuda_device *device, uint64_t elements, uint32_t per_thread, uint32_t threads)
{
    const uint64_t per_block = (uint64_t)per_thread * threads;
    const uint64_t most =
        (uint64_t)device->traits.multiprocessors * (THREADS_PER_PROCESSOR / threads) * WAVES;
    uint64_t blocks = elements / per_block + (elements % per_block != 0);
    blocks = blocks > most ? most : blocks;
    return (cuda_grid){
        .blocks_x = blocks == 0 ? 1 : (uint32_t)blocks, .blocks_y = 1, .blocks_z = 1, .threads = threads};
}

void cuda_group_extend(const cuda_device *device, group_blocks *blocks, cuda_grid *grid, uint64_t elements,
                       uint32_t per_thread, uint32_t threads)
{
    const cuda_grid own = cuda_grid_over(device, elements, per_thread, threads);
    const uint32_t before = blocks->count == 0 ? 0 : blocks->end[blocks->count - 1];
    *grid = own;
    grid->blocks_x += before;
    blocks->end[blocks->count++] = grid->blocks_x;
}
