/* Compares the bytes that two builds of the library write when they quantize, dequantize, find the
 * largest magnitude, or copy scales to another layout. */
#include "compare.h"

#include <stdlib.h>
#include <string.h>

typedef struct recode {
    const char *what, *recipe;
    operand_shape from, to;
    int64_t rows, cols;
    uint32_t flags, threads;
    fill how;
    /* `src` and `dst` are in host memory. `there` has their copies in device memory. */
    bsmm_matrix src, dst, there[2];
    float *amax, global;
} recode;

static void print_operand(const operand_shape *o, FILE *to) {
    fprintf(to, "%s%s layout %u ld+%d", bsmm_format_name(o->format), o->order ? " col" : "",
            o->layout, (int)o->extra_ld);
}

static void print_recode(const void *context, FILE *to) {
    const recode *r = context;
    fprintf(to, "%s%s%s ", r->what, r->recipe ? " by " : "", r->recipe ? r->recipe : "");
    print_operand(&r->from, to);
    fprintf(to, " to ");
    print_operand(&r->to, to);
    fprintf(to, ", %lldx%lld %s flags=%u threads=%u", (long long)r->rows, (long long)r->cols,
            fill_names[r->how], r->flags, r->threads);
}

static bsmm_exec exec_of(session *s, const recode *r) {
    bsmm_exec exec = BSMM_INIT(bsmm_exec);
    exec.device = s->options->device;
    exec.threads = r->threads;
    exec.stream = bench_device_stream(s->device);
    return exec;
}

static bsmm_status quantize(session *s, const library *l, const recode *r) {
    bsmm_quantize_desc desc = BSMM_INIT(bsmm_quantize_desc);
    desc.src = &r->there[0], desc.dst = &r->there[1];
    desc.recipe = r->recipe, desc.flags = r->flags, desc.threads = r->threads;
    desc.device = s->options->device, desc.stream = bench_device_stream(s->device);
    return l->quantize(&desc, NULL);
}

static bsmm_status dequantize(session *s, const library *l, const recode *r) {
    bsmm_exec exec = exec_of(s, r);
    return l->dequantize_on(&exec, &r->there[0], &r->there[1]);
}

static bsmm_status relayout(session *s, const library *l, const recode *r) {
    bsmm_exec exec = exec_of(s, r);
    return l->relayout_scales_on(&exec, &r->there[0], &r->there[1]);
}

static bsmm_status amax(session *s, const library *l, const recode *r) {
    bsmm_exec exec = exec_of(s, r);
    return l->amax_on(&exec, &r->there[0], r->there[1].global_scale);
}

static bsmm_status convert(session *s, const library *l, const recode *r) {
    (void)s;
    return l->convert(&r->there[0], &r->there[1]);
}

typedef bsmm_status call(session *s, const library *l, const recode *r);

static uint64_t result_bytes(const recode *r) {
    return r->dst.data_bytes + r->dst.scale_bytes + sizeof(float);
}

static bsmm_status run(session *s, call *work, int build, const recode *r, uint8_t *bytes) {
    uint64_t data = r->dst.data_bytes, scales = r->dst.scale_bytes;
    const bsmm_matrix *there = &r->there[1];
    memset(bytes, 0xA5, result_bytes(r));
    memory_write(s, there->data, bytes, data);
    memory_write(s, there->scales, bytes, scales);
    memory_write(s, there->global_scale, bytes, sizeof(float));
    bsmm_status status = work(s, &s->builds[build], r);
    memory_read(s, bytes, there->data, data);
    memory_read(s, bytes + data, there->scales, scales);
    memory_read(s, bytes + data + scales, there->global_scale, sizeof(float));
    return status;
}

static void compare(session *s, call *work, const recode *r) {
    uint64_t bytes = result_bytes(r);
    uint8_t *results[BUILDS];
    bsmm_status status[BUILDS];
    for (int i = 0; i < BUILDS; i++) {
        results[i] = malloc(bytes);
        if (!results[i]) exit(2);
        status[i] = run(s, work, i, r, results[i]);
    }
    if (status[OLD] && status[NEW]) {
        s->refused++;
    } else if (status[OLD] || status[NEW]) {
        s->different++;
        printf("DIFFERENT: status %d, now %d: ", status[OLD], status[NEW]);
        print_recode(r, stdout);
        printf("\n");
    } else {
        expect_same(s, results[OLD], results[NEW], bytes, r->what, print_recode, r);
    }
    for (int i = 0; i < BUILDS; i++)
        free(results[i]);
}

static void visit(session *s, call *work, recode r) {
    uint64_t state = s->options->seed + (uint64_t)r.rows * 131 + (uint64_t)r.how;
    float one = 1;
    if (s->turn++ % s->options->every != 0) return;
    if (matrix_make(s, &r.from, r.rows, r.cols, r.how, &state, &r.src, &r.there[0]) &&
        matrix_make(s, &r.to, r.rows, r.cols, FILL_ORDINARY, &state, &r.dst, &r.there[1])) {
        r.there[1].global_scale = memory_new(s, &one, sizeof one);
        compare(s, work, &r);
    }
    matrix_free(&r.src);
    matrix_free(&r.dst);
    bench_device_reset(s->device);
}

static const uint32_t wide[] = {BSMM_ELEM_F32, BSMM_ELEM_F16, BSMM_ELEM_BF16};
enum { WIDE = sizeof wide / sizeof wide[0] };
static const int64_t sizes[][2] = {{1, 32}, {5, 160}, {33, 97}, {130, 272}, {64, 1024}};
enum { SIZES = sizeof sizes / sizeof sizes[0] };

/* Chooses storage orders, strides and the number of threads from the number `turn` of the
 * conversion, so that they vary from conversion to conversion. */
static void vary(recode *r, uint32_t turn) {
    r->from.order = turn % 5 == 1, r->to.order = turn % 7 == 1;
    r->from.extra_ld = turn % 4 == 2 ? 8 : 0, r->to.extra_ld = turn % 4 == 3 ? 12 : 0;
    r->threads = 1 + turn % 2;
}

static void each_size(session *s, call *work, recode r) {
    for (uint32_t i = 0; i < SIZES; i++)
        for (fill how = 0; how < FILLS; how++) {
            r.rows = sizes[i][0], r.cols = sizes[i][1], r.how = how;
            vary(&r, i * FILLS + how + r.to.layout + r.from.layout);
            visit(s, work, r);
        }
}

static void quantize_into(session *s, const bsmm_recipe_info *recipe, bsmm_format format) {
    for (uint32_t i = 0; i < WIDE; i++)
        for (uint32_t layout = 0; layout < layout_count(); layout++)
            for (uint32_t flags = 0; flags <= recipe->flags; flags++) {
                recode r = {.what = "quantize", .recipe = recipe->name, .flags = flags};
                r.from.format.elem = wide[i];
                r.to.format = format, r.to.layout = layout;
                if ((flags & recipe->flags) == flags) each_size(s, quantize, r);
            }
}

static void quantize_all(session *s) {
    bsmm_recipe_info recipe = BSMM_INIT(bsmm_recipe_info);
    for (uint32_t i = 0; !bsmm_recipe_at(i, &recipe); i++) {
        char names[256], *rest = names, *name;
        snprintf(names, sizeof names, "%s", recipe.formats);
        while ((name = strtok_r(rest, " ", &rest))) {
            bsmm_format format;
            if (!bsmm_format_from_name(name, &format)) quantize_into(s, &recipe, format);
        }
    }
}

static void dequantize_all(session *s) {
    bsmm_preset_info preset = BSMM_INIT(bsmm_preset_info);
    for (uint32_t i = 0; !bsmm_preset_at(i, &preset); i++)
        for (uint32_t j = 0; j < WIDE; j++)
            for (uint32_t layout = 0; layout < layout_count(); layout++) {
                recode r = {.what = "dequantize"};
                r.from.format = preset.format, r.from.layout = layout;
                r.from.global = preset.format.scale == BSMM_SCALE_E4M3 ? 0.75f : 0;
                r.to.format.elem = wide[j];
                each_size(s, dequantize, r);
            }
}

static void relayout_all(session *s) {
    bsmm_preset_info preset = BSMM_INIT(bsmm_preset_info);
    for (uint32_t i = 0; !bsmm_preset_at(i, &preset); i++)
        for (uint32_t from = 0; from < layout_count(); from++)
            for (uint32_t to = 0; to < layout_count(); to++)
                for (uint32_t j = 0; j < SIZES; j++) {
                    recode r = {.what = "relayout", .how = FILL_SPECIAL, .threads = 1};
                    r.from = (operand_shape){.format = preset.format, .layout = from};
                    r.to = (operand_shape){.format = preset.format, .layout = to};
                    r.rows = sizes[j][0], r.cols = sizes[j][1];
                    visit(s, relayout, r);
                }
}

static void amax_all(session *s) {
    for (uint32_t i = 0; i < WIDE; i++) {
        recode r = {.what = "amax"};
        r.from.format.elem = r.to.format.elem = wide[i];
        each_size(s, amax, r);
    }
}

static void convert_all(session *s) {
    static const char *const pairs[][2] = {{"mxfp4", "nvfp4"}, {"mxfp4", "fp8_block128"}};
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        recode r = {.what = "convert"};
        bsmm_format_from_name(pairs[i][0], &r.from.format);
        bsmm_format_from_name(pairs[i][1], &r.to.format);
        each_size(s, convert, r);
    }
}

void compare_recodes(session *s) {
    quantize_all(s);
    dequantize_all(s);
    relayout_all(s);
    amax_all(s);
    if (s->device->kind->is_host) convert_all(s);
}
