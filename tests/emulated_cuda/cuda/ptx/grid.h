#ifndef BSMM_CUDA_PTX_GRID_H
#define BSMM_CUDA_PTX_GRID_H

/* On a GPU these two functions wait for the previous grid. They do nothing here, because emulated
 * grids run one after another. */
static inline void ptx_grid_wait(void) {}
static inline void ptx_grid_release_next(void) {}
static inline uint32_t ptx_grid_mapa(uint32_t address, uint32_t rank) {
    return emulated_mapped(address, rank);
}
static inline const void *ptx_grid_map(const void *pointer, uint32_t rank) {
    return emulated_pointer(emulated_mapped(emulated_address(pointer), rank));
}
static inline uint32_t ptx_grid_load_u32(uint32_t address) {
    return *static_cast<const uint32_t *>(emulated_pointer(address));
}
static inline float4 ptx_grid_load_f32x4(uint32_t address) {
    return *static_cast<const float4 *>(emulated_pointer(address));
}
static inline uint32_t ptx_grid_cluster_rank(void) {
    return emulated_rank();
}
static inline void ptx_grid_cluster_arrive(void) {
    emulated_cluster_arrive();
}
static inline void ptx_grid_cluster_arrive_relaxed(void) {
    emulated_cluster_arrive();
}
static inline void ptx_grid_cluster_wait(void) {
    emulated_cluster_wait();
}

#endif
