/* The host code of all CUDA kernels shares these functions. */
#ifndef BSMM_CUDA_HOST_KERNEL_H
#define BSMM_CUDA_HOST_KERNEL_H

#include "core/kernel.h"
#include "cuda/runtime/device.h"
#include "gpu/refuse.h"

/* Returns a reason to refuse a product that applies to every CUDA kernel, or NULL if there is none.
 * There are three reasons: the kernel's module is not in this build, the module has no image for
 * the device, or the device code does not support an element format. Modules in "sm90a/" run on
 * compute capability 9.0 only, and modules in "sm80/" run from 8.0 on. The function `refuse` of
 * each kernel calls this function first. */
const char *bsmm_cuda_refuse(const bsmm_product *product, const bsmm_cuda_function *function,
                             char *why, size_t size);

/* BSMM_CUDA_FP8_RULE is the error text of a kernel that takes only FP8 operands with fp32 scales,
 * each of which covers a multiple of 128 columns. */
#define BSMM_CUDA_FP8_RULE                                                                         \
    "the kernel takes e4m3 and e5m2 with f32 scales of multiples of 128 columns"

/* Returns A if i is 0, else B. */
static inline const bsmm_operand *bsmm_cuda_side(const bsmm_product *p, int i) {
    return i ? &p->b : &p->a;
}

/* These functions align a part of the workspace to BSMM_CUDA_ROOM_ALIGN bytes. bsmm_cuda_room_bytes
 * returns the bytes that a kernel must request from the caller to get `bytes` aligned bytes.
 * bsmm_cuda_room returns the aligned address in the caller's workspace, which may be NULL if no
 * bytes are needed. */
enum { BSMM_CUDA_ROOM_ALIGN = 256 };

static inline uint64_t bsmm_cuda_room_bytes(uint64_t bytes) {
    return bytes ? bytes + BSMM_CUDA_ROOM_ALIGN : 0;
}

static inline uint8_t *bsmm_cuda_room(void *workspace) {
    const uintptr_t over = (uintptr_t)workspace % BSMM_CUDA_ROOM_ALIGN;
    return over ? (uint8_t *)workspace + (BSMM_CUDA_ROOM_ALIGN - over) : workspace;
}

/* Returns true for the element formats that Hopper's FP8 tensor cores multiply, e4m3 and e5m2. */
bool bsmm_cuda_is_fp8(uint32_t elem);

/* Returns true if the operand has fp32 scales, and each scale covers whole rows or a multiple of
 * 128 columns. */
bool bsmm_cuda_has_groups(const bsmm_operand *o);
/* Returns true if the operand has fp32 scales, each of which covers whole rows or a multiple of 128
 * columns (bsmm_cuda_has_groups), and also covers all rows or a multiple of 128 rows. */
bool bsmm_cuda_has_row_groups(const bsmm_operand *o);

#endif
