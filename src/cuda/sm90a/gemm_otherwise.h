/* This is the fallback of GEMM kernels of the kind POW2. They multiply operands that were packed to
 * 8-bit elements with 1 x 128 scales, which are powers of two. The fallback runs if this packed
 * format cannot hold the values of A or B. The thread blocks of the kernel then do one of two
 * things:
 * - If bf16 can hold the values, they pack A and B to bf16. The bf16 GEMM kernel that is queued
 *   next computes D.
 * - Otherwise they compute D themselves from the stored operands, with the code of the generic GEMM
 *   kernel (sm80/bf16_tiles.h).
 *
 * gemm_body.h includes this file. */
#define BF16_RARE BSMM_DEVICE
#include "cuda/sm80/bf16_tiles.h"
#include "cuda/sm80/pack_plain.h"

static_assert(BLOCK_THREADS == BSMM_BF16_THREADS, "the same blocks do both");
/* The fallback of this kernel uses the first bytes of the kernel's dynamic shared memory. The
 * kernel's mbarriers are already initialized when the fallback begins, and lie at the end of
 * dynamic shared memory. This assertion says that the fallback does not overwrite them. */
static_assert(8 * BF16_PLANE + 8 * BSMM_BF16_TILE <= BARRIERS_AT, "memory for a product");

/* Runs the fallback for operands whose values 8-bit floats cannot hold. `shared` is the address of
 * dynamic shared memory, aligned to 1024 bytes. */
static __device__ __forceinline__ void work_otherwise(const bsmm_wgmma_params *p, uint8_t *shared) {
    if (!bsmm_cuda_gate_is_plain(&p->gate)) {
        bf16_tiles(1, 1, false, &p->whole, shared, (uint32_t *)(shared + 8 * BF16_PLANE), NULL);
        return;
    }
#pragma unroll 1
    for (int i = 0; i < 2; i++)
        pack_plain(&p->plain[i], &p->whole.sides[i].o);
}
