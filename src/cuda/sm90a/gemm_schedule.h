/* Which pieces of work a cluster does, and in what order. A piece is a cluster tile and a range of
 * its k blocks.
 *
 * The first `whole_tiles` tiles are dealt out one after another: all clusters then walk along K
 * side by side, and what one reads the others find in the level-2 cache, which does not hold the
 * rows of a wave of tiles for all of a long K. The rest, between one and two per cluster, are laid
 * end to end, k blocks after k blocks, and cut into equal shares, so that all clusters end
 * together. A share that begins inside a tile goes on with the accumulators that the cluster before
 * it hands over: additions happen in the order of an undivided tile, so the bits do not depend on
 * where the cuts are. A share is walked from its end, the piece that is handed on, to its
 * beginning, the piece that is handed over, so that nobody waits: what the cluster before does
 * first and this one last are a tile together, and a share is hardly shorter. */
#ifndef BSMM_CUDA_SM90A_GEMM_SCHEDULE_H
#define BSMM_CUDA_SM90A_GEMM_SCHEDULE_H

#include "cuda/sm90a/gemm_params.h"

/* Shorter pieces than this cost more than they even out. */
#define GEMM_SHORTEST_PIECE 4

typedef struct gemm_piece {
    int32_t tile, k_begin, k_end;
} gemm_piece;

typedef struct gemm_schedule {
    int32_t cluster, clusters, k_blocks;
    const bsmm_wgmma_divisor *by_k;
    int32_t whole_tiles;
    int32_t begin, end; /* of this cluster's share, in k blocks after the whole tiles */
    int32_t next;       /* number of the whole tile to come */
} gemm_schedule;

/* n / d, 0 <= n < 2^31. */
static __device__ __forceinline__ int32_t gemm_divide(int32_t n, const bsmm_wgmma_divisor *d) {
    return (int32_t)((uint64_t)(uint32_t)n * d->multiplier >> d->shift);
}

/* Where share `index` begins: the first shares are a k block longer than the rest. */
static __device__ __forceinline__ int32_t gemm_cut(const bsmm_wgmma_params *p, int32_t index) {
    int32_t cut = index * p->share + min(index, p->longer_shares);
    int32_t inside = cut - gemm_divide(cut, &p->by_k) * p->k_blocks;
    if (inside < GEMM_SHORTEST_PIECE) return cut - inside;
    if (inside > p->k_blocks - GEMM_SHORTEST_PIECE) return cut - inside + p->k_blocks;
    return cut;
}

static __device__ __forceinline__ gemm_schedule gemm_schedule_make(const bsmm_wgmma_params *p,
                                                                   int32_t cluster,
                                                                   int32_t clusters) {
    gemm_schedule s;
    int32_t tiles = p->tiles_m * p->tiles_n;
    s.cluster = cluster;
    s.clusters = clusters;
    s.k_blocks = p->k_blocks;
    s.by_k = &p->by_k;
    s.whole_tiles = p->whole_tiles;
    s.begin = s.end = 0;
    if (tiles > p->whole_tiles) {
        s.begin = gemm_cut(p, cluster);
        s.end = gemm_cut(p, cluster + 1);
    }
    s.next = 0;
    return s;
}

/* The next piece; 0 when there is none. */
static __device__ __forceinline__ int gemm_schedule_next(gemm_schedule *s, gemm_piece *piece) {
    const int32_t blocks = s->k_blocks;
    int32_t tile = s->cluster + s->next * s->clusters;
    if (tile < s->whole_tiles) {
        s->next++;
        piece->tile = tile;
        piece->k_begin = 0;
        piece->k_end = blocks;
        return 1;
    }
    if (s->begin >= s->end) return 0;
    int32_t last =
        gemm_divide(s->end - 1, s->by_k); /* the tile that the rest of the share ends with */
    int32_t k_begin = last * blocks > s->begin ? 0 : s->begin - last * blocks;
    piece->tile = s->whole_tiles + last;
    piece->k_begin = k_begin;
    piece->k_end = s->end - last * blocks;
    s->end = last * blocks + k_begin;
    return 1;
}

#endif
