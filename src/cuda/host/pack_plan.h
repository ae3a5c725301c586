/* The host side of packing: the layout of a packed operand, the kernel that makes it, and the
 * kernel's parameters. Only the functions of pack.c access a device. */
#ifndef BSMM_CUDA_HOST_PACK_PLAN_H
#define BSMM_CUDA_HOST_PACK_PLAN_H

#include "cuda/runtime/device.h"
#include "format/format.h"
#include "gpu/pack.h"
#include "gpu/params.h"

/* Offsets and sizes of a packed operand's parts, in bytes, except for group_pitch, which is in
 * floats. */
typedef struct bsmm_pack_layout {
    uint64_t group_scales, elements, bytes;
    uint64_t element_pitch, group_pitch;
} bsmm_pack_layout;

bsmm_pack_layout bsmm_pack_layout_of(int64_t rows, int64_t cols, bsmm_pack_route route);

/* Returns NULL if a packing route takes the operand, else the reason (static, or in why). It does
 * not look at the operand's values: the header of the packed operand says if they fit. */
const char *bsmm_pack_refuse(const bsmm_operand *o, bsmm_pack_route route, char *why, size_t size);

/* Returns the name of a packing route, which the header of packed weights contains. */
const char *bsmm_pack_route_name(bsmm_pack_route route);

typedef struct bsmm_pack_launch {
    const bsmm_cuda_function *function;
    uint32_t grid[2], block;
    bsmm_pack_job job;
    /* the packing kernel and the kernel that clears the header, ready to launch; bsmm_pack_load
     * sets them */
    bsmm_cuda_ready ready, clear;
    bsmm_pack_layout at; /* the layout of the packed operand in device memory */
    bool with_scales;
    /* True if the caller has queued the clearing of the header, perhaps for several headers at
     * once. */
    bool header_is_clear;
    /* True if the caller has queued only packing since the header was cleared. The kernel's inputs
     * were then ready before, and it need not wait for the previous kernel. */
    bool overlaps;
} bsmm_pack_launch;

/* Returns the launch that packs an operand, which has device pointers and was not refused, to
 * `packed`, which is aligned to 1024 bytes. If with_scales is false, no group scales are written,
 * and a group that needs one marks the operand WIDE. */
bsmm_pack_launch bsmm_pack_launch_of(const bsmm_operand *o, bsmm_pack_route route, bool with_scales,
                                     void *packed);

/* Sets the pointers of a launch that was made when the operand had no memory. Its data and scales
 * must be aligned to 16 bytes. */
void bsmm_pack_bind(const bsmm_operand *o, void *packed, bsmm_pack_launch *launch);

/* Like bsmm_pack_launch_of for bf16 without group scales, but for packing by the blocks of a GEMM
 * kernel whose gate is closed. */
bsmm_pack_plain bsmm_pack_plain_of(const bsmm_operand *o, void *packed);
void bsmm_pack_plain_bind(const bsmm_operand *o, void *packed, bsmm_pack_plain *plain);

typedef struct bsmm_pack_scales_launch {
    const bsmm_cuda_function *function;
    uint32_t grid[2], block;
    bsmm_pack_scales_job job;
    /* the kernel that copies the scales, ready to launch; bsmm_pack_scales_load sets it */
    bsmm_cuda_ready ready;
} bsmm_pack_scales_launch;

/* Returns the launch that copies fp32 scales for a GEMM kernel that reads 8-bit elements in place.
 * If by_row is true, the result is to[k / 128][row], with rows padded to 4 by zeros. Otherwise it
 * is to[row / 128][k / 128], for blocks of 128 rows. */
bsmm_pack_scales_launch bsmm_pack_scales_launch_of(const bsmm_operand *o, bool by_row, float *to);

/* ---- on a device (pack.c) ---- */

/* These functions load the kernels that a run launches. Call them when a plan is made. */
bsmm_status bsmm_pack_load(const bsmm_cuda_device *device, bsmm_pack_launch *launch);
bsmm_status bsmm_pack_scales_load(const bsmm_cuda_device *device, bsmm_pack_scales_launch *launch);
bsmm_status bsmm_pack_clear_load(const bsmm_cuda_device *device, bsmm_cuda_ready *clear);

/* Queues the clearing of up to 256 words, aligned to 4 bytes. The device's context must be current,
 * as for the next two functions. */
bsmm_status bsmm_pack_clear(const bsmm_cuda_device *device, const bsmm_cuda_ready *clear, void *to,
                            uint32_t bytes, void *stream);

/* Queues the clearing of the header, then the packing kernel. For an operand without elements it
 * writes nothing, not even the header. */
bsmm_status bsmm_pack_run(const bsmm_cuda_device *device, const bsmm_pack_launch *launch,
                          void *stream);
bsmm_status bsmm_pack_scales_run(const bsmm_cuda_device *device,
                                 const bsmm_pack_scales_launch *launch, void *stream);

/* ---- parameters that other kernels need too ---- */

/* Returns log2 of the number of neighboring threads that work on `items` items, which is a multiple
 * of `least`. It is the largest number, up to 256, that leaves no thread idle. */
uint32_t bsmm_lanes_log2(int64_t items, uint32_t least);

#endif
