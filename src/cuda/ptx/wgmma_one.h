/* Defines a function for one wgmma.mma_async instruction (PTX ISA 8.7, section 9.7.15.5.2). Include
 * this file once for each instruction. The includer's macros choose the shape and the types:
 *
 *   WGMMA_NAME    name of the function
 *   WGMMA_HOLD    name of its compiler barrier
 *   WGMMA_N       columns: 8, 16, 32, 64, 96, 128, 192 or 256; with WGMMA_WORDS 32 to 128 or 256
 *   WGMMA_SHAPE   for example "m64n128k32"
 *   WGMMA_TYPES   for example "f32.e4m3.e4m3"
 *   WGMMA_TAIL    ", 1, 1" (no negation); for 16-bit types ", 1, 1, 0, 0" (no transposition)
 *   WGMMA_WORDS   if it is defined, a is in registers: four per thread, with the layout that
 *                 mma.m16n8k16 has for the warp's 16 rows. The registers must not change until
 *                 the wgmma has completed. WGMMA_TAIL must be ", 1, 1, 0"
 *
 * The instruction computes d (64 x N) = a (64 x k) b (N x k)^T + (add ? d : 0). For each group j of
 * 8 columns, thread t of the warpgroup holds four elements of d, where r = 16 (t / 32) + t % 32 / 4
 * and c = 8 j + 2 (t % 4):
 *
 *   d[4 j]       at (r, c)
 *   d[4 j + 1]   at (r, c + 1)
 *   d[4 j + 2]   at (r + 8, c)
 *   d[4 j + 3]   at (r + 8, c + 1) */

#ifndef BSMM_CUDA_PTX_WGMMA_LISTS
#    define BSMM_CUDA_PTX_WGMMA_LISTS
#    define WGMMA_LEAST_4 "%0, %1, %2, %3"
#    define WGMMA_LEAST_8 WGMMA_LEAST_4 ", %4, %5, %6, %7"
#    define WGMMA_TEXT_0  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15"
#    define WGMMA_TEXT_16                                                                          \
        "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#    define WGMMA_TEXT_32                                                                          \
        "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47"
#    define WGMMA_TEXT_48                                                                          \
        "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#    define WGMMA_TEXT_64                                                                          \
        "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, "         \
        "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95"
#    define WGMMA_TEXT_96                                                                          \
        "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, "   \
        "%111, "                                                                                   \
        "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, "     \
        "%126, %127"
#    define WGMMA_REG_4(d, i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#    define WGMMA_REG_16(d, i)                                                                     \
        WGMMA_REG_4(d, i), WGMMA_REG_4(d, i + 4), WGMMA_REG_4(d, i + 8), WGMMA_REG_4(d, i + 12)
#    define WGMMA_REG_32(d, i) WGMMA_REG_16(d, i), WGMMA_REG_16(d, i + 16)
#    define WGMMA_REG_64(d, i) WGMMA_REG_32(d, i), WGMMA_REG_32(d, i + 32)
#endif

#if WGMMA_N == 8
#    define WGMMA_LIST "{" WGMMA_LEAST_4 "}, %4, %5, p"
#    define WGMMA_ADD  "%6"
#    define WGMMA_REGS WGMMA_REG_4(d, 0)
#elif WGMMA_N == 16
#    define WGMMA_LIST "{" WGMMA_LEAST_8 "}, %8, %9, p"
#    define WGMMA_ADD  "%10"
#    define WGMMA_REGS WGMMA_REG_4(d, 0), WGMMA_REG_4(d, 4)
#elif WGMMA_N == 32 && defined(WGMMA_WORDS)
#    define WGMMA_LIST "{" WGMMA_TEXT_0 "}, {%16, %17, %18, %19}, %20, p"
#    define WGMMA_ADD  "%21"
#    define WGMMA_REGS WGMMA_REG_16(d, 0)
#elif WGMMA_N == 32
#    define WGMMA_LIST "{" WGMMA_TEXT_0 "}, %16, %17, p"
#    define WGMMA_ADD  "%18"
#    define WGMMA_REGS WGMMA_REG_16(d, 0)
#elif WGMMA_N == 64 && defined(WGMMA_WORDS)
#    define WGMMA_LIST "{" WGMMA_TEXT_0 ", " WGMMA_TEXT_16 "}, {%32, %33, %34, %35}, %36, p"
#    define WGMMA_ADD  "%37"
#    define WGMMA_REGS WGMMA_REG_32(d, 0)
#elif WGMMA_N == 64
#    define WGMMA_LIST "{" WGMMA_TEXT_0 ", " WGMMA_TEXT_16 "}, %32, %33, p"
#    define WGMMA_ADD  "%34"
#    define WGMMA_REGS WGMMA_REG_32(d, 0)
#elif WGMMA_N == 96 && defined(WGMMA_WORDS)
#    define WGMMA_LIST                                                                             \
        "{" WGMMA_TEXT_0 ", " WGMMA_TEXT_16 ", " WGMMA_TEXT_32 "}, {%48, %49, %50, %51}, %52, p"
#    define WGMMA_ADD  "%53"
#    define WGMMA_REGS WGMMA_REG_32(d, 0), WGMMA_REG_16(d, 32)
#elif WGMMA_N == 96
#    define WGMMA_LIST "{" WGMMA_TEXT_0 ", " WGMMA_TEXT_16 ", " WGMMA_TEXT_32 "}, %48, %49, p"
#    define WGMMA_ADD  "%50"
#    define WGMMA_REGS WGMMA_REG_32(d, 0), WGMMA_REG_16(d, 32)
#elif WGMMA_N == 128 && defined(WGMMA_WORDS)
#    define WGMMA_LIST                                                                             \
        "{" WGMMA_TEXT_0 ", " WGMMA_TEXT_16 ", " WGMMA_TEXT_32 ", " WGMMA_TEXT_48                  \
        "}, {%64, %65, %66, %67}, %68, p"
#    define WGMMA_ADD  "%69"
#    define WGMMA_REGS WGMMA_REG_64(d, 0)
#elif WGMMA_N == 128
#    define WGMMA_LIST                                                                             \
        "{" WGMMA_TEXT_0 ", " WGMMA_TEXT_16 ", " WGMMA_TEXT_32 ", " WGMMA_TEXT_48 "}, %64, %65, p"
#    define WGMMA_ADD  "%66"
#    define WGMMA_REGS WGMMA_REG_64(d, 0)
#elif WGMMA_N == 192
#    define WGMMA_LIST                                                                             \
        "{" WGMMA_TEXT_0 ", " WGMMA_TEXT_16 ", " WGMMA_TEXT_32 ", " WGMMA_TEXT_48                  \
        ", " WGMMA_TEXT_64 "}, %96, %97, p"
#    define WGMMA_ADD  "%98"
#    define WGMMA_REGS WGMMA_REG_64(d, 0), WGMMA_REG_32(d, 64)
#elif WGMMA_N == 256 && defined(WGMMA_WORDS)
#    define WGMMA_LIST                                                                             \
        "{" WGMMA_TEXT_0 ", " WGMMA_TEXT_16 ", " WGMMA_TEXT_32 ", " WGMMA_TEXT_48                  \
        ", " WGMMA_TEXT_64 ", " WGMMA_TEXT_96 "}, {%128, %129, %130, %131}, %132, p"
#    define WGMMA_ADD  "%133"
#    define WGMMA_REGS WGMMA_REG_64(d, 0), WGMMA_REG_64(d, 64)
#elif WGMMA_N == 256
#    define WGMMA_LIST                                                                             \
        "{" WGMMA_TEXT_0 ", " WGMMA_TEXT_16 ", " WGMMA_TEXT_32 ", " WGMMA_TEXT_48                  \
        ", " WGMMA_TEXT_64 ", " WGMMA_TEXT_96 "}, %128, %129, p"
#    define WGMMA_ADD  "%130"
#    define WGMMA_REGS WGMMA_REG_64(d, 0), WGMMA_REG_64(d, 64)
#endif

#ifdef WGMMA_WORDS
#    define WGMMA_A      const uint32_t *a
#    define WGMMA_A_REGS "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3])
#else
#    define WGMMA_A      uint64_t a
#    define WGMMA_A_REGS "l"(a)
#endif

static __device__ __forceinline__ void WGMMA_NAME(float *d, WGMMA_A, uint64_t b, uint32_t add) {
    asm volatile("{ .reg .pred p;\n\t"
                 "setp.ne.b32 p, " WGMMA_ADD ", 0;\n\t"
                 "wgmma.mma_async.sync.aligned." WGMMA_SHAPE "." WGMMA_TYPES
                 " " WGMMA_LIST WGMMA_TAIL "; }"
                 : WGMMA_REGS
                 : WGMMA_A_REGS, "l"(b), "r"(add)
                 : "memory");
}

/* Emits no instruction. It keeps the compiler from moving accesses to d across this point, because
 * a wgmma instruction may still be writing d. */
static __device__ __forceinline__ void WGMMA_HOLD(float *d) {
    asm volatile("" : WGMMA_REGS::"memory");
}

#undef WGMMA_LIST
#undef WGMMA_ADD
#undef WGMMA_REGS
#undef WGMMA_A
#undef WGMMA_A_REGS
#undef WGMMA_WORDS
#undef WGMMA_NAME
#undef WGMMA_HOLD
#undef WGMMA_N
#undef WGMMA_SHAPE
#undef WGMMA_TYPES
#undef WGMMA_TAIL
