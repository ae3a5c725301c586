/* Chooses the CUDA kernel that copies block scales from one layout to another, and fills its
 * parameters. If the destination's layout has padding, the kernel stores zeros there. */
#include "cuda/host/recode_calls.h"
#include "gpu/params.h"

#include <string.h>

enum { ROW, COL, BYTE };

static const bsmm_cuda_function move_scales = {.module = "sm80/recode", .name = "move_scales"};
static const bsmm_cuda_function move_regions = {.module = "sm80/relayout", .name = "move_regions"};
static const bsmm_cuda_function move_both = {.module = "sm80/relayout", .name = "move_both"};

/* A region of scales has 2^13 bytes. The number of a byte in its region has 13 bits. Each of these
 * bits is a bit of the scale's row, of the scale's column, or of the number of the byte within its
 * scale. This struct describes one of the 13 bits. `axis` says to which of these three numbers the
 * bit belongs, and `number` is its position there. If the bit is set, the offset of the byte in
 * memory is larger by steps[0] bytes in the source and by steps[1] bytes in the destination. */
typedef struct bit {
    uint32_t axis, number;
    uint64_t steps[2];
} bit;

/* Describes the scales in the source or in the destination. */
typedef struct side {
    const void *scales;
    const bsmm_axis_map *maps[2]; /* `maps` holds the maps of rows and of columns to offsets. */
    /* `extents` holds the numbers of rows and columns of scales. In a destination whose padding
     * becomes 0, the padding counts as scales. */
    uint32_t extents[2];
} side;

/* Sets *step to the distance in memory, in scales, between two scales whose rows (or columns)
 * differ only in bit `number`. Returns false if the distance depends on other bits of the row or
 * column. This is so if a tile of the layout has a side that is not a power of two. */
static bool find_step(const bsmm_axis_map *map, uint32_t number, uint64_t *step) {
    for (uint32_t i = 0; i + 1 < map->count; i++) {
        const bsmm_axis_digit *d = &map->digits[i];
        const uint32_t bits = (uint32_t)__builtin_ctz(d->extent);
        if (d->extent != 1u << bits) return false;
        if (number < bits) {
            *step = d->stride << number;
            return true;
        }
        number -= bits;
    }
    *step = map->digits[map->count - 1].stride << number;
    return true;
}

/* A region has 2^rows_log2 x 2^cols_log2 scales of `size` bytes. Each byte of it has a number. The
 * bits of this number are those of its scale's row, those of its scale's column and those of its
 * position in the scale. For each bit of the numbers, the function writes an entry to `bits`. It
 * says how many bytes further a byte lies if the bit is 1 instead of 0, in the source and in the
 * destination. Returns false if this distance depends on the values of other bits, as in a layout
 * whose tiles have a side that is not a power of two. */
static bool list_bits(const side sides[2], uint32_t size, uint32_t rows_log2, uint32_t cols_log2,
                      bit *bits) {
    const uint32_t counts[] = {[ROW] = rows_log2, [COL] = cols_log2, [BYTE] = size == 4 ? 2 : 0};
    int count = 0;
    for (uint32_t axis = ROW; axis <= BYTE; axis++)
        for (uint32_t i = 0; i < counts[axis]; i++) {
            bit *b = &bits[count++];
            *b = (bit){axis, i, {1u << i, 1u << i}};
            for (int s = 0; s < 2 && axis != BYTE; s++) {
                if (!find_step(sides[s].maps[axis], i, &b->steps[s])) return false;
                b->steps[s] *= size;
            }
        }
    return true;
}

/* Each entry of `bits` describes one bit of the numbers of the bytes in a region of scales. A byte
 * whose number has this bit lies steps[0] bytes further in the source, and steps[1] bytes further
 * in the destination, than the byte without it. Stores pointers to the entries in `sorted`, ordered
 * by steps[way], smallest first. `way` is 0 for the source and 1 for the destination. */
static void sort_bits(const bit *bits, int way, const bit **sorted) {
    for (int i = 0; i < BSMM_REGION_BITS; i++) {
        int at = i;
        for (; at > 0 && sorted[at - 1]->steps[way] > bits[i].steps[way]; at--)
            sorted[at] = sorted[at - 1];
        sorted[at] = &bits[i];
    }
}

/* Returns true if a thread can load or store `bytes` bytes at once. The address of the scales must
 * be a multiple of `bytes`. Each stride of the layout must be smaller than `bytes` or a multiple of
 * it. */
static bool is_aligned(const side *s, uint32_t size, uint64_t bytes) {
    uint64_t all = (uintptr_t)s->scales;
    for (int axis = ROW; axis <= COL; axis++)
        for (uint32_t i = 0; i < s->maps[axis]->count; i++) {
            const bsmm_axis_digit *d = &s->maps[axis]->digits[i];
            if (d->stride * size >= bytes) all |= d->stride * size;
        }
    return all % bytes == 0;
}

/* A thread may load or store several scales at once. Their row numbers (or their column numbers)
 * then differ only in bit `b` and lower bits, so they form a group of 2^(b + 1) rows or columns.
 * Returns true if the number of rows (or columns) is a multiple of the group's size, so that no
 * group extends past the end of the matrix. */
static bool is_whole(const side *s, const bit *b) {
    return b->axis == BYTE || s->extents[b->axis] % (2ull << b->number) == 0;
}

/* Returns log2 of the number of bytes that a thread can load or store at once: 0, 2 or 4. */
static uint32_t bytes_log2(const side *s, int way, uint32_t size, const bit *const *sorted) {
    for (uint32_t log2 = 4; log2 > 0; log2 -= 2) {
        bool fits = is_aligned(s, size, 1u << log2);
        for (uint32_t i = 0; i < log2; i++)
            fits = fits && sorted[i]->steps[way] == 1u << i && is_whole(s, sorted[i]);
        if (fits) return log2;
    }
    return 0;
}

/* Returns the offset in shared memory of byte number `number` of a region, counted in the order of
 * the destination. The 16-byte units are permuted, so that threads whose bytes are a multiple of
 * 128 apart write to different banks. */
static uint32_t place_of(uint32_t number) {
    return number ^ ((number >> 7 ^ number >> 10) & 7) << 4;
}

/* Each byte of a region has a number of 13 bits. Bit `b` is one bit of these numbers. If this bit
 * of a byte's number is 1 instead of 0, the byte lies at another position. Returns the distances
 * between the two positions: in bytes in the source (`way` is 0) or in the destination (`way` is
 * 1), in bytes in shared memory, and in rows and columns of scales. */
static bsmm_region_spot spot_of(const bit *b, int way, const bit *const *by_store) {
    uint32_t number = 0;
    while (by_store[number] != b)
        number++;
    return (bsmm_region_spot){.step = b->steps[way],
                              .place = place_of(1u << number),
                              .row = b->axis == ROW ? 1u << b->number : 0,
                              .col = b->axis == COL ? 1u << b->number : 0};
}

static bsmm_region_walk walk_of(const bit *const *sorted, int way, uint32_t log2,
                                const bit *const *by_store) {
    bsmm_region_walk walk = {.log2 = log2};
    uint32_t count = 1; /* `count` is the number of steps that are known so far. */
    for (uint32_t i = log2; i < BSMM_REGION_BITS; i++) {
        const bsmm_region_spot add = spot_of(sorted[i], way, by_store);
        if (i < log2 + BSMM_REGION_THREAD_BITS) {
            walk.of_bits[i - log2] = add;
            continue;
        }
        for (uint32_t j = 0; j < count; j++) {
            const bsmm_region_spot *from = &walk.of_steps[j];
            walk.of_steps[count + j] =
                (bsmm_region_spot){from->step + add.step, from->place ^ add.place,
                                   from->row + add.row, from->col + add.col};
        }
        count *= 2;
    }
    return walk;
}

/* Returns log2 of the largest number of columns that a region (a part of the scale matrix) may
 * have. This number is 128, 64 or 32. 128 and 64 are allowed only if the last region extends past
 * the end of a row by at most an eighth of the row's length. If the matrix has fewer than 32
 * columns, the number is instead the smallest power of two that is not less than their number. */
static uint32_t cols_log2_of(uint64_t cols) {
    uint32_t log2 = 7;
    while (log2 > 5 && bsmm_round_up((int64_t)cols, 1 << log2) * 8 > (int64_t)cols * 9)
        log2--;
    while (log2 > 0 && cols <= 1u << (log2 - 1))
        log2--;
    return log2;
}

/* Fills the parameters of the kernel move_regions for regions of 2^cols_log2 columns. Returns false
 * if the kernel does not support the layouts. */
static bool plan_regions(const bsmm_relayout_job *job, uint32_t cols_log2,
                         bsmm_relayout_regions *p) {
    const side sides[2] = {
        {job->from, {&job->from_row_map, &job->from_col_map}, {job->known_rows, job->known_cols}},
        {job->to, {&job->to_row_map, &job->to_col_map}, {job->rows, job->cols}},
    };
    const uint32_t size = job->wide ? 4 : 1, bytes_bits = job->wide ? 2 : 0;
    const uint32_t rows_log2 = BSMM_REGION_BITS - bytes_bits - cols_log2;
    bit bits[BSMM_REGION_BITS];
    const bit *by_load[BSMM_REGION_BITS], *by_store[BSMM_REGION_BITS];
    if (!list_bits(sides, size, rows_log2, cols_log2, bits)) return false;
    sort_bits(bits, 0, by_load);
    sort_bits(bits, 1, by_store);
    *p = (bsmm_relayout_regions){
        .job = *job,
        .load = walk_of(by_load, 0, bytes_log2(&sides[0], 0, size, by_load), by_store),
        .store = walk_of(by_store, 1, bytes_log2(&sides[1], 1, size, by_store), by_store),
        .rows_log2 = rows_log2,
        .cols_log2 = cols_log2};
    for (int i = 0; i < 4; i++)
        p->places[i] = spot_of(by_load[i], 0, by_store).place;
    while (p->place_log2 < p->load.log2 && by_load[p->place_log2] == by_store[p->place_log2])
        p->place_log2++;
    p->place_log2 &= ~1u;
    const int64_t down = bsmm_ceil_div(job->rows, (int64_t)1 << rows_log2);
    const int64_t across = bsmm_ceil_div(job->cols, (int64_t)1 << cols_log2);
    p->across = (uint32_t)across;
    p->count = (uint32_t)bsmm_min_i64(down * across, INT32_MAX);
    return down * across <= INT32_MAX;
}

/* The kernel move_regions moves the scale matrix in regions of 8192 bytes. This function chooses
 * the shape of a region, in rows and columns, with which a thread loads and stores the most bytes
 * by one instruction. It returns false if move_regions does not support the layouts, or if a thread
 * could load or store only single bytes. In the second case, move_scales is faster. */
static bool choose_regions(const bsmm_relayout_job *job, bsmm_relayout_regions *best) {
    const uint32_t most = cols_log2_of(job->cols);
    bool found = false;
    for (uint32_t fewer = 0; fewer < 4 && fewer <= most; fewer++) {
        bsmm_relayout_regions p;
        if (!plan_regions(job, most - fewer, &p)) continue;
        if (!found || p.load.log2 + p.store.log2 > best->load.log2 + best->store.log2) *best = p;
        found = true;
    }
    return found && best->load.log2 > 0 && best->store.log2 > 0;
}

/* Returns true if move_scales is faster than move_regions. This is so if three conditions hold:
 * move_scales moves words of four scales, move_regions cannot load more than a word at once either,
 * and there are fewer regions (parts of the scale matrix) than SMs. */
static bool is_quicker_by_words(const bsmm_recode *job, const bsmm_relayout_job *q,
                                const bsmm_relayout_regions *regions) {
    const bsmm_cuda_device *device = job->device;
    return q->by_words && regions->load.log2 < 4 &&
           regions->count < (uint32_t)device->multiprocessors;
}

/* Returns the description of a launch of the kernel move_scales, and sets the field lanes_log2 of
 * its parameters *q. */
static bsmm_cuda_launch_desc launch_of_scales(bsmm_relayout_job *q) {
    enum { THREADS = BSMM_RECODE_THREADS };
    int64_t items = q->by_words ? q->cols / 4 : q->cols, lanes = 1;
    while (lanes < items && lanes < THREADS)
        lanes *= 2;
    q->lanes_log2 = 31u - (uint32_t)__builtin_clz((uint32_t)lanes);
    int64_t down = bsmm_ceil_div(q->rows, THREADS / lanes * BSMM_MOVED_ROWS);
    return (bsmm_cuda_launch_desc){
        .function = &move_scales,
        .grid = {(uint32_t)bsmm_ceil_div(items, lanes),
                 (uint32_t)bsmm_min_i64(down, BSMM_RECODE_MOST_DOWN)},
        .block = {THREADS},
    };
}

/* Extends the rows and columns of scales over the layout's padding. A layout pads the matrix to
 * whole tiles or, if it has no tiles, pads each row or column to the pitch. */
static void add_padding(bsmm_scale_map *map) {
    map->rows = bsmm_round_up(map->rows, map->tile_rows);
    map->cols = bsmm_round_up(map->cols, map->tile_cols);
    if (map->digit_count) return;
    if (map->tile_col_step == 1)
        map->cols = (int64_t)map->tile_row_step;
    else
        map->rows = (int64_t)map->tile_col_step;
}

/* If four adjacent codes of a row form an aligned word in the source and in the destination, a
 * thread copies them by one load and one store. If they do so only in the destination, the thread
 * uses two loads of two codes or four loads of one code, and one store. This is faster than one
 * thread for each code, because a thread computes an address in the destination for each store.
 * Returns the number of loads for the second case (job.by_words). Returns 0 if a thread cannot copy
 * four codes. */
static uint32_t loads_of(const bsmm_relayout_job *q) {
    const bsmm_axis_digit *first = &q->from_col_map.digits[0];
    uint64_t odd = (uintptr_t)q->from | q->known_cols;
    if (q->by_words || q->wide || q->cols % 4) return q->by_words;
    if (!bsmm_axis_fours(q->to, &q->to_row_map, &q->to_col_map, 0)) return 0;
    if (first->stride != 1 || (q->from_col_map.count > 1 && first->extent % 4)) return 0;
    for (uint32_t i = 0; i < q->from_row_map.count; i++)
        odd |= q->from_row_map.digits[i].stride;
    for (uint32_t i = 1; i < q->from_col_map.count; i++)
        odd |= q->from_col_map.digits[i].stride;
    return odd % 2 ? 4 : 2;
}

/* Returns the parameters of the kernels that copy the scales of *job to another layout. If the
 * destination's padding must become 0, the extents in the parameters include the padding, so that
 * the kernels write it too. */
static bsmm_relayout_job job_of(const bsmm_recode *job) {
    bsmm_recode whole = *job;
    if (bsmm_recode_has_padding(job)) add_padding(&whole.dst.map);
    bsmm_relayout_job q = bsmm_relayout_job_of(&whole);
    q.by_words = loads_of(&q);
    return q;
}

bsmm_status bsmm_cuda_ready_relayout_make(const bsmm_recode *job, bsmm_cuda_ready_relayout *ready) {
    bsmm_relayout_job q = job_of(job);
    bsmm_relayout_regions *regions = &ready->copy.regions;
    memset(ready, 0, sizeof *ready);
    if (bsmm_recode_is_empty(&job->src)) return BSMM_OK;
    ready->copy.by_regions = choose_regions(&q, regions) && !is_quicker_by_words(job, &q, regions);
    bsmm_cuda_launch_desc launch = {
        .function = &move_regions, .grid = {regions->count}, .block = {BSMM_REGION_THREADS}};
    if (!ready->copy.by_regions) {
        launch = launch_of_scales(&q);
        regions->job = q;
    }
    return bsmm_cuda_ready_make(job->device, &launch, &ready->launch);
}

/* Sets *params to the parameters of a copy of scales that a plan has prepared, with the addresses
 * `from` and `to` of this run. */
static void bind(const bsmm_cuda_ready_relayout *ready, const void *from, void *to,
                 bsmm_relayout_copy *params) {
    *params = ready->copy;
    params->regions.job.from = from;
    params->regions.job.to = to;
}

bsmm_status bsmm_cuda_ready_relayout_launch(const bsmm_cuda_device *device,
                                            const bsmm_cuda_ready_relayout *ready, void *stream,
                                            const void *from, void *to) {
    bsmm_relayout_copy params;
    if (!ready->launch.handle) return BSMM_OK;
    bind(ready, from, to, &params);
    return bsmm_cuda_ready_launch(device, &ready->launch, stream,
                                  BSMM_CUDA_ARGUMENTS(&params.regions));
}

/* Prepares one launch that copies both the scales of A and the scales of B. If this launch would
 * have too many thread blocks, does nothing, and each copy keeps a launch of its own. */
static bsmm_status make_both(const bsmm_cuda_device *device, bsmm_cuda_ready_relayouts *ready) {
    int64_t blocks = 0;
    for (int i = 0; i < 2; i++) {
        const bsmm_cuda_launch_desc *alone = &ready->of[i].launch.desc;
        bsmm_relayout_regions *regions = &ready->of[i].copy.regions;
        const int64_t count = (int64_t)alone->grid[0] * bsmm_gpu_extent(alone->grid[1]);
        if (alone->grid[1] == BSMM_RECODE_MOST_DOWN || count > INT32_MAX) return BSMM_OK;
        if (!ready->of[i].copy.by_regions) regions->across = alone->grid[0];
        regions->count = (uint32_t)count;
        blocks += count;
    }
    if (blocks > INT32_MAX) return BSMM_OK;
    return bsmm_cuda_ready_make(device,
                                &(bsmm_cuda_launch_desc){.function = &move_both,
                                                         .grid = {(uint32_t)blocks},
                                                         .block = {BSMM_REGION_THREADS}},
                                &ready->both);
}

bsmm_status bsmm_cuda_ready_relayouts_make(const bsmm_cuda_device *device,
                                           const bsmm_recode *const jobs[2],
                                           bsmm_cuda_ready_relayouts *ready) {
    memset(ready, 0, sizeof *ready);
    for (int i = 0; i < 2; i++)
        if (jobs[i]) BSMM_TRY(bsmm_cuda_ready_relayout_make(jobs[i], &ready->of[i]));
    if (!ready->of[0].launch.handle || !ready->of[1].launch.handle) return BSMM_OK;
    return make_both(device, ready);
}

bsmm_status bsmm_cuda_ready_relayouts_launch(const bsmm_cuda_device *device,
                                             const bsmm_cuda_ready_relayouts *ready, void *stream,
                                             const void *const from[2], void *const to[2]) {
    bsmm_relayout_both params;
    for (int i = 0; i < 2 && !ready->both.handle; i++)
        BSMM_TRY(bsmm_cuda_ready_relayout_launch(device, &ready->of[i], stream, from[i], to[i]));
    if (!ready->both.handle) return BSMM_OK;
    for (int i = 0; i < 2; i++)
        bind(&ready->of[i], from[i], to[i], &params.copies[i]);
    return bsmm_cuda_ready_launch(device, &ready->both, stream, BSMM_CUDA_ARGUMENTS(&params));
}

bsmm_status bsmm_cuda_relayout(const bsmm_recode *job) {
    bsmm_cuda_ready_relayout ready;
    BSMM_TRY(bsmm_recode_check_size(&job->src));
    BSMM_TRY(bsmm_cuda_ready_relayout_make(job, &ready));
    BSMM_CUDA_RETURN_INSIDE(job->device,
                            bsmm_cuda_ready_relayout_launch(job->device, &ready, job->stream,
                                                            job->src.m.scales, job->dst.m.scales));
}
