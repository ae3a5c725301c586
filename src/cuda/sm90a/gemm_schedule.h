/* The tile scheduler of the sm_90a GEMM. It decides which work units a cluster computes, and in
 * what order. A work unit is a cluster tile and a range of its k blocks.
 *
 * The first `whole_tiles` tiles are dealt out round-robin. All clusters then walk along K side by
 * side and read the same operand rows at nearly the same time, so the reads hit in L2. L2 cannot
 * hold the rows of a wave of tiles over all of a long K.
 *
 * The remaining tiles, between one and two per cluster, are split along K. Their k blocks are laid
 * end to end and divided into equal ranges, so that all clusters end at the same time. A range that
 * begins inside a tile continues with the accumulators of the cluster before it. Additions
 * therefore happen in the order of an unsplit tile, and results are bitwise identical wherever the
 * ranges begin.
 *
 * A cluster walks its range backwards. It first computes the part of a tile whose accumulators it
 * passes on. Last it computes the part that needs accumulators from the cluster before it. Those
 * are then ready, because a range is hardly shorter than a tile, so no cluster waits. */
#ifndef BSMM_CUDA_SM90A_GEMM_SCHEDULE_H
#define BSMM_CUDA_SM90A_GEMM_SCHEDULE_H

#include "cuda/sm90a/gemm_params.h"

/* The smallest number of k blocks in a work unit. Splitting off fewer costs more time than the
 * better balance saves. */
#define GEMM_SHORTEST_PIECE 4

typedef struct gemm_piece {
    int32_t tile, k_begin, k_end;
} gemm_piece;

typedef struct gemm_schedule {
    int32_t cluster, clusters, k_blocks;
    const bsmm_wgmma_divisor *by_k;
    int32_t whole_tiles;
    /* This cluster's split-K range. It counts k blocks, after those of the unsplit tiles. */
    int32_t begin, end;
    int32_t next; /* the index of the next unsplit tile of this cluster */
} gemm_schedule;

/* Returns n / d for 0 <= n < 2^31. */
static __device__ __forceinline__ int32_t gemm_divide(int32_t n, const bsmm_wgmma_divisor *d) {
    return (int32_t)((uint64_t)(uint32_t)n * d->multiplier >> d->shift);
}

/* Returns the first k block of split-K range `index`. The first ranges are one k block longer than
 * the rest. If a range would begin or end with a very short work unit, its border moves to the
 * border of the tile. */
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

/* Sets *piece to the next work unit. Returns 0 if there is none. */
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
    /* This is the last tile of the cluster's remaining range. */
    int32_t last = gemm_divide(s->end - 1, s->by_k);
    int32_t k_begin = last * blocks > s->begin ? 0 : s->begin - last * blocks;
    piece->tile = s->whole_tiles + last;
    piece->k_begin = k_begin;
    piece->k_end = s->end - last * blocks;
    s->end = last * blocks + k_begin;
    return 1;
}

#endif
