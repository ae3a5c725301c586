/* This is the tile scheduler of the sm_90a GEMM. It decides which work units a cluster computes,
 * and in what order. A work unit is a cluster tile of D and a range of its k blocks. A k block is
 * 128 bytes along K.
 *
 * If `splits` is 1, the first `whole_tiles` tiles go to the clusters round-robin, and each is
 * computed by one cluster. All clusters walk along K at the same time and read the same operand
 * rows at nearly the same time, so most reads hit in L2. L2 would not have room for these rows over
 * all of a long K.
 *
 * The remaining tiles, between one and two per cluster, are split along K (split-K). The k blocks
 * of all these tiles are laid end to end and divided into equal ranges, one for each cluster, so
 * that all clusters end at the same time. If a range begins inside a tile, its cluster continues
 * with the accumulators of the cluster that has the range before. Products are therefore added in
 * the same order as in a tile that is not split, and results are bitwise identical for every
 * division into ranges.
 *
 * A cluster walks its range backwards, so that no cluster waits for another. A range is about as
 * long as a tile or longer. It therefore extends over parts of two or three tiles. The cluster
 * first computes the part at the end of its range, whose accumulators the next cluster needs. It
 * last computes the part at the beginning of its range, which needs the accumulators of the cluster
 * before. That cluster has long finished the end of its own range by then.
 *
 * If the number of tiles is at most half the number of clusters that run at once, the host may set
 * `splits` to 2 or more. The k blocks of each tile are then split into this number of parts, and
 * each part has a cluster of its own. The first clusters compute the first parts of all tiles, the
 * next clusters the second parts, and so on, so that consecutive clusters read the same rows of B
 * (of A, if D has one row of tiles). All parts begin with accumulators of zero. The cluster of a
 * tile's last part adds the accumulators of the other parts to its own, from the next to last part
 * down to the first. In this case, the order of additions depends on `splits`, and so do the bits
 * of the results. */
#ifndef BSMM_CUDA_SM90A_GEMM_SCHEDULE_H
#define BSMM_CUDA_SM90A_GEMM_SCHEDULE_H

#include "cuda/sm90a/gemm_params.h"

/* gemm_split_at splits tiles along K. GEMM_SHORTEST_RANGE is the least number of k blocks of a part
 * of a tile. Smaller parts would divide the work more evenly among thread blocks, but would cost
 * more time than this saves. */
#define GEMM_SHORTEST_RANGE 4

typedef struct gemm_work_unit {
    int32_t tile, k_begin, k_end;
} gemm_work_unit;

typedef struct gemm_schedule {
    int32_t cluster, clusters, k_blocks;
    const bsmm_wgmma_divisor *by_k;
    int32_t whole_tiles;
    /* The k blocks of all tiles that are split along K are numbered one after another. Number 0 is
     * the first k block of the first of these tiles. This cluster computes the k blocks `begin` to
     * `end` - 1. */
    int32_t begin, end;
    int32_t next; /* `next` is the index of this cluster's next unsplit tile. */
} gemm_schedule;

/* Returns n / d for 0 <= n < 2^31, by a multiplication and a shift. */
static __device__ __forceinline__ int32_t gemm_divide(int32_t n, const bsmm_wgmma_divisor *d) {
    return (int32_t)((uint64_t)(uint32_t)n * d->multiplier >> d->shift);
}

/* The k blocks of all tiles that are split along K are numbered from the first of these tiles on,
 * and divided into ranges, one for each cluster. The first longer_ranges ranges have one k block
 * more than the others. Returns the number of the first k block of range `index`. Parts of tiles
 * with fewer than GEMM_SHORTEST_RANGE k blocks are avoided. If a range would begin less than this
 * number after the start of a tile, it begins at the start of the tile instead. If it would begin
 * less than this number before the end of a tile, it begins at the start of the next tile. */
static __device__ __forceinline__ int32_t gemm_split_at(const bsmm_wgmma_params *p, int32_t index) {
    int32_t split = index * p->range_blocks + min(index, p->longer_ranges);
    int32_t inside = split - gemm_divide(split, &p->by_k) * p->k_blocks;
    if (inside < GEMM_SHORTEST_RANGE) return split - inside;
    if (inside > p->k_blocks - GEMM_SHORTEST_RANGE) return split - inside + p->k_blocks;
    return split;
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
    if (p->splits > 1) {
        const int32_t part = cluster / tiles, tile = cluster - part * tiles;
        if (part < p->splits) {
            s.begin = tile * s.k_blocks + part * s.k_blocks / p->splits;
            s.end = tile * s.k_blocks + (part + 1) * s.k_blocks / p->splits;
        }
    } else if (tiles > p->whole_tiles) {
        s.begin = gemm_split_at(p, cluster);
        s.end = gemm_split_at(p, cluster + 1);
    }
    s.next = 0;
    return s;
}

/* Sets *unit to the cluster's next work unit, i.e. a tile and a range of its k blocks. Returns 0
 * if there is none. */
static __device__ __forceinline__ int gemm_schedule_next(gemm_schedule *s, gemm_work_unit *unit) {
    const int32_t blocks = s->k_blocks;
    int32_t tile = s->cluster + s->next * s->clusters;
    if (tile < s->whole_tiles) {
        s->next++;
        unit->tile = tile;
        unit->k_begin = 0;
        unit->k_end = blocks;
        return 1;
    }
    if (s->begin >= s->end) return 0;
    /* The cluster goes through its split-K range from the end to the start. The k blocks from
     * s->begin to s->end are not yet computed. `last` is the tile to which the last of these k
     * blocks belongs. */
    int32_t last = gemm_divide(s->end - 1, s->by_k);
    int32_t k_begin = last * blocks > s->begin ? 0 : s->begin - last * blocks;
    unit->tile = s->whole_tiles + last;
    unit->k_begin = k_begin;
    unit->k_end = s->end - last * blocks;
    s->end = last * blocks + k_begin;
    return 1;
}

#endif
