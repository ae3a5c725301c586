/* Implements bsmm_quantize: the argument checks, the scale of the whole tensor, and the
 * quantization of all rows. */
#include "base/threads.h"
#include "quantize/recipe.h"
#include "recipe/rules.h"

#include <math.h>
#include <stdlib.h>

/* This struct holds the validated arguments of a call of bsmm_quantize. */
typedef struct quantize_call {
    bsmm_quantize_desc desc;
    bsmm_operand src, dst;
    const bsmm_recipe *recipe;
    bool two_level;
    bsmm_place place;
} quantize_call;

static bsmm_status check_flags(const quantize_call *call) {
    const bsmm_recipe_info *info = &call->recipe->info;
    uint32_t unknown = call->desc.flags & ~info->flags;
    if (unknown)
        return bsmm_fail(BSMM_E_INVALID,
                         "flags: value is 0x%x; the recipe %s for %s understands 0x%x",
                         call->desc.flags, info->name, info->formats, info->flags);
    if (call->desc.reserved)
        return bsmm_fail(BSMM_E_INVALID, "reserved: value is %u; must be 0", call->desc.reserved);
    return BSMM_OK;
}

/* Checks the value of amax. If amax lies in the memory of another device, the value cannot be read
 * and is not checked. */
static bsmm_status check_amax(const quantize_call *call) {
    const float *amax = call->desc.amax;
    if (!amax) return BSMM_OK;
    if (!call->place.backend->host_memory)
        return call->place.backend->check_pointer(call->place.device, amax, "amax");
    if (*amax >= 0 || isnan(*amax)) return BSMM_OK;
    return bsmm_fail(BSMM_E_INVALID, "amax: value is %g; must be 0 or more", (double)*amax);
}

/* Checks that dst stores the second-level scale in a form that the recipe supports: as a multiplier
 * or as a divisor, as in the project from which the recipe comes. */
static bsmm_status check_kind(const quantize_call *call) {
    static const char *const kinds[] = {"multiplier", "divisor"};
    uint32_t kind = call->dst.m.global_kind;
    char others[128];
    if (call->recipe->kinds & BSMM_KIND_BIT(kind)) return BSMM_OK;
    bsmm_recipe_list_kind(call->dst.m.format, kind, others, sizeof others);
    return bsmm_fail(BSMM_E_INVALID,
                     "dst.global_kind: value is %u; the recipe %s stores a %s, whose reciprocal is "
                     "not exact; those that store a %s are%s",
                     kind, call->recipe->info.name, kinds[!kind], kinds[kind], others);
}

static bsmm_status check_level(const quantize_call *call) {
    if (!call->two_level) return BSMM_OK;
    if (call->dst.m.global_scale) return check_kind(call);
    bool choice = call->recipe->info.flags & BSMM_QUANTIZE_ONE_LEVEL;
    return bsmm_fail(
        BSMM_E_INVALID, "dst.global_scale: value is NULL; the recipe %s has a scale per tensor%s",
        call->recipe->info.name, choice ? " unless BSMM_QUANTIZE_ONE_LEVEL is set" : "");
}

static bsmm_status take_place(quantize_call *call) {
    bsmm_exec exec = {.struct_size = sizeof exec,
                      .threads = call->desc.threads,
                      .device = call->desc.device,
                      .stream = call->desc.stream,
                      .pool = call->desc.pool};
    return bsmm_place_take(&exec, &call->place);
}

static bsmm_status take_call(const bsmm_quantize_desc *desc, quantize_call *call) {
    BSMM_TRY(bsmm_take_struct(&call->desc, sizeof call->desc, desc, "desc"));
    BSMM_TRY(take_place(call));
    BSMM_TRY(bsmm_operand_take(call->desc.src, "src", &call->src));
    BSMM_TRY(bsmm_operand_take(call->desc.dst, "dst", &call->dst));
    BSMM_TRY(bsmm_check_plain(&call->src, "src"));
    BSMM_TRY(bsmm_check_shape(&call->src, &call->dst));
    BSMM_TRY(bsmm_recipe_find(call->desc.recipe, call->dst.m.format, &call->recipe));
    call->two_level = call->recipe->steps.tensor && !(call->desc.flags & BSMM_QUANTIZE_ONE_LEVEL);
    BSMM_TRY(check_flags(call));
    BSMM_TRY(check_amax(call));
    BSMM_TRY(check_level(call));
    BSMM_TRY(bsmm_place_check(&call->place, &call->src, "src", 0, NULL));
    BSMM_TRY(bsmm_place_check(&call->place, &call->dst, "dst", 0, NULL));
    return bsmm_check_overlap(&call->src, &call->dst);
}

/* Describes the division of the work into `tasks` tasks of `rows` rows each. If the source is
 * column-major, a task transposes `panel` columns at a time to a row-major buffer before it
 * quantizes them. */
typedef struct task_shape {
    int64_t rows, tasks, panel;
} task_shape;

static task_shape shape_tasks(const quantize_call *call) {
    static const int64_t elements = 1 << 16;
    int64_t rows = bsmm_min_i64(bsmm_rows_per_task(&call->src, &call->dst), call->src.m.rows);
    if (rows == 0 || call->src.m.cols == 0) return (task_shape){1, 0, 1};
    int64_t block = call->dst.m.format.block_cols, group = bsmm_elem_group(call->dst.m.format.elem);
    int64_t unit = block ? block : group;
    int64_t panel = elements / rows / unit * unit;
    return (task_shape){rows, bsmm_ceil_div(call->src.m.rows, rows),
                        bsmm_min_i64(panel ? panel : unit, call->src.m.cols)};
}

static void convert_rows(const quantize_call *call, const bsmm_recipe_run *run, task_shape shape,
                         int64_t task, float *values) {
    int64_t row = task * shape.rows, rows = bsmm_min_i64(shape.rows, call->src.m.rows - row);
    const bsmm_operand *src = &call->src;
    if (src->m.order == BSMM_ORDER_ROW) {
        bsmm_plain all = {src->m.format.elem, src->m.data, src->m.ld};
        bsmm_plain from = bsmm_plain_at(&all, row, 0);
        bsmm_recipe_store_part(run, row, rows, 0, src->m.cols, &from);
        return;
    }
    for (int64_t c = 0; c < src->m.cols; c += shape.panel) {
        int64_t cols = bsmm_min_i64(shape.panel, src->m.cols - c);
        bsmm_values_load(src, row, rows, c, cols, values, cols);
        bsmm_recipe_store_part(run, row, rows, c, cols, &(bsmm_plain){BSMM_ELEM_F32, values, cols});
    }
}

static bsmm_status tensor_amax(const quantize_call *call, float *amax) {
    uint32_t bits;
    if (call->desc.amax) {
        *amax = *call->desc.amax;
        return BSMM_OK;
    }
    BSMM_TRY(bsmm_amax_bits(&call->src, &call->place, &bits));
    *amax = bsmm_bits_float(bits);
    return BSMM_OK;
}

static void store_level(const quantize_call *call, const bsmm_tensor_step *tensor) {
    if (call->dst.m.global_scale)
        *call->dst.m.global_scale =
            call->dst.m.global_kind == BSMM_GLOBAL_DIVISOR ? tensor->divisor : tensor->multiplier;
}

/* Returns the number of tasks that a thread takes from the queue at once. It is small, so that a
 * thread that is slowed down does not finish long after the other threads. */
static int64_t tasks_at_a_time(const task_shape *shape, int threads) {
    return shape->tasks / ((int64_t)threads * 16) + 1;
}

typedef struct tasks_run {
    const quantize_call *call;
    const bsmm_recipe_run *run;
    task_shape shape;
    /* `scratch` has a buffer for each thread, in which the thread transposes a part of a
     * column-major source to row-major order. */
    float *scratch;
} tasks_run;

static void convert_tasks(const void *context, int64_t first, int64_t end, int worker) {
    const tasks_run *x = context;
    float *values = x->scratch + worker * x->shape.rows * x->shape.panel;
    for (int64_t task = first; task < end; task++)
        convert_rows(x->call, x->run, x->shape, task, values);
}

static bsmm_status run_tasks(const quantize_call *call, task_shape shape, int threads,
                             float *scratch) {
    bsmm_recipe_run run =
        bsmm_recipe_start(call->recipe, &call->dst, call->src.m.format.elem, call->desc.flags);
    run.line = bsmm_scale_line_make(&call->dst.map);
    bsmm_tame_rule tame;
    if (call->two_level) {
        float amax;
        BSMM_TRY(tensor_amax(call, &amax));
        bsmm_tensor_by(call->recipe->steps.tensor, amax, &run.tensor);
    }
    bsmm_tame_rule_make(call->recipe->steps.block, &run.tensor, &tame);
    run.tame = &tame;
    const tasks_run x = {call, &run, shape, scratch};
    const bsmm_loop loop = {.threads = threads,
                            .count = shape.tasks,
                            .at_a_time = tasks_at_a_time(&shape, threads),
                            .body = convert_tasks,
                            .context = &x};
    BSMM_TRY(bsmm_loop_run(&loop, &call->place.pool));
    if (call->dst.m.format.scale != BSMM_SCALE_NONE)
        bsmm_scales_pad(&call->dst, 0, call->dst.map.rows);
    store_level(call, &run.tensor);
    return BSMM_OK;
}

/* Allocates a buffer of `values` floats. Each thread transposes parts of a column-major source to
 * row-major order in it. Later the report of errors uses the same memory. */
static bsmm_status allocate(const quantize_call *call, uint64_t values, bool report,
                            void **scratch) {
    uint64_t bytes = 0, lines = 0;
    bool fits =
        bsmm_mul_u64(values, sizeof(float), &bytes) &&
        bsmm_mul_u64(report ? (uint64_t)call->src.m.rows : 0, sizeof(bsmm_report_line), &lines) &&
        bytes < SIZE_MAX && lines < SIZE_MAX;
    *scratch = fits ? malloc((size_t)(bytes > lines ? bytes : lines) + 1) : NULL;
    if (*scratch) return BSMM_OK;
    return bsmm_fail(BSMM_E_MEMORY,
                     "src.rows x cols: value is %lld x %lld; out of memory for the buffers",
                     (long long)call->src.m.rows, (long long)call->src.m.cols);
}

static bsmm_status quantize_here(const quantize_call *call, bsmm_quantize_report *report) {
    void *scratch;
    task_shape shape = shape_tasks(call);
    int threads = (int)bsmm_min_i64(call->place.threads, shape.tasks ? shape.tasks : 1);
    uint64_t values = (uint64_t)threads * (uint64_t)shape.rows * (uint64_t)shape.panel;
    BSMM_TRY(allocate(call, values, report != NULL, &scratch));
    bsmm_status status = BSMM_OK;
    bsmm_quantize_report result = {0};
    if (report) status = bsmm_give_struct(report, &result, sizeof result, "report");
    if (status == BSMM_OK) status = run_tasks(call, shape, threads, scratch);
    if (status == BSMM_OK && report)
        status = bsmm_report_make(&call->src, &call->dst, &call->place, scratch, &result);
    if (status == BSMM_OK && report)
        status = bsmm_give_struct(report, &result, sizeof result, "report");
    free(scratch);
    return status;
}

static bsmm_status quantize_there(const quantize_call *call, const bsmm_quantize_report *report) {
    if (report)
        return bsmm_fail(
            BSMM_E_UNSUPPORTED,
            "report: given; must be NULL on %s devices (bsmm_compare makes one of host "
            "memory)",
            call->place.backend->name);
    bsmm_recode job = {.src = call->src,
                       .dst = call->dst,
                       .flags = call->desc.flags,
                       .two_level = call->two_level,
                       .amax = call->desc.amax};
    bsmm_recipe_set(call->recipe, &job);
    return bsmm_recode_on(&call->place, call->place.backend->quantize, &job, "quantizing");
}

bsmm_status bsmm_quantize(const bsmm_quantize_desc *desc, bsmm_quantize_report *report) {
    quantize_call call;
    BSMM_TRY(take_call(desc, &call));
    if (!call.place.backend->host_memory) return quantize_there(&call, report);
    return quantize_here(&call, report);
}
