/* Host side of packing: where the parts of a packed operand lie, which kernel makes it, with which
 * parameters. Only the functions of pack.c touch a device. */
#ifndef BSMM_CUDA_HOST_PACK_PLAN_H
#define BSMM_CUDA_HOST_PACK_PLAN_H

#include "cuda/runtime/device.h"
#include "format/format.h"
#include "gpu/pack.h"
#include "gpu/params.h"

/* Offsets and sizes in bytes; group_pitch in floats. */
typedef struct bsmm_pack_layout {
    uint64_t group_scales, elements, bytes;
    uint64_t element_pitch, group_pitch;
} bsmm_pack_layout;

bsmm_pack_layout bsmm_pack_layout_of(int64_t rows, int64_t cols, bsmm_pack_route route);

/* NULL if a route takes the operand, else the reason (static, or in why). What its values are does
 * not count; the header tells. */
const char *bsmm_pack_refuse(const bsmm_operand *o, bsmm_pack_route route, char *why, size_t size);

typedef struct bsmm_pack_launch {
    const bsmm_cuda_function *function;
    uint32_t grid[2], block;
    bsmm_pack_job job;
    bsmm_cuda_ready ready, clear; /* bsmm_pack_load makes them */
    bsmm_pack_layout at;          /* where the job's results lie */
    bool with_scales;
    bool header_is_clear; /* the caller has queued the zeros, of several headers at once maybe */
    /* Since then the caller has queued nothing but packing: its inputs were ready before, and the
     * kernel need not wait. */
    bool overlaps;
} bsmm_pack_launch;

/* The launch that packs o (device pointers; not refused) to `packed`, aligned to 1024 bytes.
 * with_scales false: no group scales are written, and a group that needs one makes the operand
 * WIDE. */
bsmm_pack_launch bsmm_pack_launch_of(const bsmm_operand *o, bsmm_pack_route route, bool with_scales,
                                     void *packed);

/* Sets the memory of a launch that was made when the operand had none: of operands whose data and
 * scales are aligned to 16 bytes. */
void bsmm_pack_bind(const bsmm_operand *o, void *packed, bsmm_pack_launch *launch);

/* The same as bsmm_pack_launch_of to bf16 without group scales, for blocks that have other work if
 * it is not wanted. */
bsmm_pack_plain bsmm_pack_plain_of(const bsmm_operand *o, void *packed);
void bsmm_pack_plain_bind(const bsmm_operand *o, void *packed, bsmm_pack_plain *plain);

typedef struct bsmm_pack_scales_launch {
    const bsmm_cuda_function *function;
    uint32_t grid[2], block;
    bsmm_pack_scales_job job;
    bsmm_cuda_ready ready; /* bsmm_pack_scales_load makes it */
} bsmm_pack_scales_launch;

/* fp32 scales for an engine that reads 8-bit elements as they are. by_row: to[k / 128][row], rows
 * padded to 4 with zeros; else to[row / 128][k / 128], for blocks of 128 rows. */
bsmm_pack_scales_launch bsmm_pack_scales_launch_of(const bsmm_operand *o, bool by_row, float *to);

/* ---- on a device (pack.c) ---- */

/* When a plan is made: loads what the runs below launch. */
bsmm_status bsmm_pack_load(const bsmm_cuda_device *device, bsmm_pack_launch *launch);
bsmm_status bsmm_pack_scales_load(const bsmm_cuda_device *device, bsmm_pack_scales_launch *launch);
bsmm_status bsmm_pack_clear_load(const bsmm_cuda_device *device, bsmm_cuda_ready *clear);

/* Queues zeros: up to 256 words, aligned to 4 bytes. This and the next two with the device's
 * context current. */
bsmm_status bsmm_pack_clear(const bsmm_cuda_device *device, const bsmm_cuda_ready *clear, void *to,
                            uint32_t bytes, void *stream);

/* Queues the packing: the header becomes zero, then the kernel runs. Nothing, not even the header,
 * is written for an operand without elements. */
bsmm_status bsmm_pack_run(const bsmm_cuda_device *device, const bsmm_pack_launch *launch,
                          void *stream);
bsmm_status bsmm_pack_scales_run(const bsmm_cuda_device *device,
                                 const bsmm_pack_scales_launch *launch, void *stream);

/* ---- parameters that other kernels need too ---- */

/* log2 of the threads side by side over `items` items, a multiple of `least`: the most, up to 256,
 * that leave none idle. */
uint32_t bsmm_lanes_log2(int64_t items, uint32_t least);

#endif
