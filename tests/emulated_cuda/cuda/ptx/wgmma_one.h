/* Replaces the kernels' header cuda/ptx/wgmma_one.h, which is included once for each wgmma
 * instruction. The emulated instruction is executed when a thread waits for it. */
#ifdef WGMMA_WORDS
static inline void WGMMA_NAME(float *d, const uint32_t *a, uint64_t b, uint32_t add) {
    emulated_push(EMULATED_PRODUCTS,
                  [=] { emulated_wgmma_words(d, a, b, add, WGMMA_N, WGMMA_TYPES); });
}
#else
static inline void WGMMA_NAME(float *d, uint64_t a, uint64_t b, uint32_t add) {
    emulated_push(EMULATED_PRODUCTS, [=] { emulated_wgmma(d, a, b, add, WGMMA_N, WGMMA_TYPES); });
}
#endif
static inline void WGMMA_HOLD(float *) {}

#undef WGMMA_NAME
#undef WGMMA_HOLD
#undef WGMMA_N
#undef WGMMA_SHAPE
#undef WGMMA_TYPES
#undef WGMMA_TAIL
#undef WGMMA_WORDS
