/* Declares the host code of packing (gpu/pack.h). These functions determine the layout of a packed
 * operand, the kernel that packs it, and the kernel's parameters. Only the functions of pack.c
 * access a device. */
#ifndef BSMM_CUDA_HOST_PACK_PLAN_H
#define BSMM_CUDA_HOST_PACK_PLAN_H

#include "cuda/runtime/device.h"
#include "format/format.h"
#include "gpu/pack.h"
#include "gpu/params.h"

/* Describes the layout of a packed operand (gpu/pack.h). A group is 128 columns of one row, and
 * each group has one fp32 scale. `group_scales` and `elements` are the offsets in bytes of the
 * group scales and of the elements, and `bytes` is the size of the packed operand. element_pitch is
 * the distance in bytes from row to row of the elements. The scales of the first groups of all rows
 * come first, then those of the second groups, and so on. group_pitch is the distance in floats
 * from one of these lists to the next. */
typedef struct bsmm_pack_layout {
    uint64_t group_scales, elements, bytes;
    uint64_t element_pitch, group_pitch;
} bsmm_pack_layout;

bsmm_pack_layout bsmm_pack_layout_of(int64_t rows, int64_t cols, bsmm_pack_route route);

/* Tests whether the operand's format can be packed to the format that `route` names (gpu/pack.h).
 * Returns NULL if it can, and otherwise the reason, which is a static text or is written to `why`.
 * The operand's values are not known here. Whether the packed format holds them is found out when
 * the operand is packed; the packed operand's header then tells it. */
const char *bsmm_pack_refuse(const bsmm_operand *o, char name, bsmm_pack_route route, char *why,
                             size_t size);

/* Returns the name of a packing route, i.e. of the packed format. The header of packed weights
 * contains it. */
const char *bsmm_pack_route_name(bsmm_pack_route route);

typedef struct bsmm_pack_launch {
    const bsmm_cuda_function *function;
    uint32_t grid[2], block;
    bsmm_pack_job job;
    /* `ready` is the launch of the packing kernel. `clear` is the launch of the kernel that clears
     * the header of the packed operand. bsmm_pack_load sets both. */
    bsmm_cuda_ready ready, clear;
    bsmm_pack_layout at; /* `at` is the layout of the packed operand in device memory. */
    bool with_scales;
    /* `header_is_clear` is true if the caller has already queued a kernel that clears the packed
     * operand's header, for example together with other headers. */
    bool header_is_clear;
    /* `overlaps` is true if this packing kernel may start before the previous kernels of the stream
     * have ended. This is so if the caller has queued only packing kernels since the header was
     * cleared, because they do not write what this kernel reads. */
    bool overlaps;
    /* If `cleared` is not NULL, the packing kernel sets the word in device memory at this address
     * to 0 and does not write the header. Only kernels with fp32 scales can do so
     * (bsmm_pack_f16_clears). */
    uint32_t *cleared;
} bsmm_pack_launch;

/* Returns the launch that packs an operand to `packed`, which is aligned to 1024 bytes. The operand
 * has device pointers, and bsmm_pack_refuse has accepted it. A group (128 elements of a row) may
 * need a scale other than 1. If with_scales is true, the kernel writes a group scale for each
 * group. If it is false, the kernel writes none. If a group needs one, it sets the flag WIDE in the
 * header instead, and a fallback must compute the product. */
bsmm_pack_launch bsmm_pack_launch_of(const bsmm_operand *o, bsmm_pack_route route, bool with_scales,
                                     void *packed);

/* Sets the pointers of a launch that was made before the operand's addresses were known. The
 * operand's data and scales must be aligned to 16 bytes. */
void bsmm_pack_bind(const bsmm_operand *o, void *packed, bsmm_pack_launch *launch);

/* Returns the parameters with which the thread blocks of a GEMM kernel pack an operand to bf16
 * themselves, without group scales (fp32 scales of 128 elements). They do so if the 8-bit format to
 * which the operand was packed before cannot hold its values (sm80/gate.h). */
bsmm_pack_plain bsmm_pack_plain_of(const bsmm_operand *o, void *packed);
void bsmm_pack_plain_bind(const bsmm_operand *o, void *packed, bsmm_pack_plain *plain);

typedef struct bsmm_pack_scales_launch {
    const bsmm_cuda_function *function;
    uint32_t grid[2], block;
    bsmm_pack_scales_job job;
    /* `ready` is the launch that copies the scales. bsmm_pack_scales_load sets it. */
    bsmm_cuda_ready ready;
} bsmm_pack_scales_launch;

/* Returns the launch that copies fp32 scales of an operand to a layout that the GEMM kernel reads.
 * It is needed if no packing kernel does this, because the GEMM kernel reads the operand's elements
 * where the caller stores them. If by_row is true, the copy has the layout [k / 128][row], in which
 * the number of rows is padded to a multiple of 4 by zeros. Otherwise each scale covers 128 rows,
 * and the copy has the layout [row / 128][k / 128]. */
bsmm_pack_scales_launch bsmm_pack_scales_launch_of(const bsmm_operand *o, bool by_row, float *to);

/* Returns true if one launch can pack the operand to f16 (bsmm_pack_f16_launch_of). */
bool bsmm_pack_has_f16(const bsmm_operand *o);

/* Returns true if the kernel that packs this operand to f16 can also set the word at the address
 * bsmm_pack_launch.cleared to 0. */
bool bsmm_pack_f16_clears(const bsmm_operand *o);

/* Returns the launch that packs an operand to f16, multiplied by 2^shift. The packed operand has
 * the same layout and header as one that is packed to bf16. If bsmm_pack_is_half returns false for
 * the header, the packed elements are wrong. The pointers of the launch are set when it is run
 * (bsmm_pack_bind). Call this function only if bsmm_pack_has_f16 returns true. */
bsmm_pack_launch bsmm_pack_f16_launch_of(const bsmm_operand *o, bool with_scales, uint32_t shift);

typedef struct bsmm_pack_half_launch {
    uint32_t grid;
    bsmm_pack_half_job job;
    /* `ready` is the launch that converts the operand from bf16 to f16. bsmm_pack_half_load sets
     * it. */
    bsmm_cuda_ready ready;
} bsmm_pack_half_launch;

/* Returns the launch that converts a packed operand in place from bf16 to f16. The launch runs
 * after the one that packs the operand to bf16. Its pointers are set when it is run. */
bsmm_pack_half_launch bsmm_pack_half_launch_of(const bsmm_operand *o, uint32_t shift);

/* The functions from here on access a device (pack.c). */

/* These functions load the kernels that the following functions queue. Call them when a plan is
 * made, so that a run loads nothing. */
bsmm_status bsmm_pack_load(const bsmm_cuda_device *device, bsmm_pack_launch *launch);
bsmm_status bsmm_pack_scales_load(const bsmm_cuda_device *device, bsmm_pack_scales_launch *launch);
bsmm_status bsmm_pack_half_load(const bsmm_cuda_device *device, bsmm_pack_half_launch *launch);
bsmm_status bsmm_pack_clear_load(const bsmm_cuda_device *device, bsmm_cuda_ready *clear);

/* Queues a kernel that sets `bytes` bytes at `to` to 0. `bytes` is at most 1024, and `to` is
 * aligned to 4 bytes. The device's context must be current for this function, bsmm_pack_run and
 * bsmm_pack_scales_run. */
bsmm_status bsmm_pack_clear(const bsmm_cuda_device *device, const bsmm_cuda_ready *clear, void *to,
                            uint32_t bytes, void *stream);

/* bsmm_pack_run queues the kernel that clears the header, unless header_is_clear is set, and then
 * the packing kernel. bsmm_pack_scales_run queues the kernel that copies scales. For an operand
 * without elements, neither function writes anything. */
bsmm_status bsmm_pack_run(const bsmm_cuda_device *device, const bsmm_pack_launch *launch,
                          void *stream);
bsmm_status bsmm_pack_scales_run(const bsmm_cuda_device *device,
                                 const bsmm_pack_scales_launch *launch, void *stream);
bsmm_status bsmm_pack_half_run(const bsmm_cuda_device *device, const bsmm_pack_half_launch *launch,
                               void *stream);

/* A row consists of `items` items, and adjacent threads process it together, one item each at a
 * time. Returns log2 of the number of these threads: the largest power of two from `least` to 256
 * that divides `items`, so that no thread is ever idle. `least` is a power of two, and `items` is a
 * multiple of it. */
uint32_t bsmm_lanes_log2(int64_t items, uint32_t least);

#endif
