/* Tests the devices of bench. The test checks their names, copies to device memory and back, and
 * the timing of graphs. It also checks the results of cuBLASLt, because a comparison with wrong
 * results would be unfair. Tests that need a GPU are skipped without one. */
/* The test includes a source file of bench, because the tested functions are static. */
#include "../../bench/device_cuda_cublaslt.c" /* NOLINT(bugprone-suspicious-include) */

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static bench_device *open_or_skip(void) {
    bench_device *cuda = bench_device_open("cuda:0");
    if (cuda) return cuda;
    printf("skipped: no CUDA device: %s\n", bench_device_error());
    skip();
    return NULL;
}

static void names_are_told_apart(void **state) {
    (void)state;
    const char *const hosts[] = {"cpu", "cudax", "", "gpu:0", NULL};
    for (size_t i = 0; i < sizeof hosts / sizeof hosts[0]; i++)
        assert_true(bench_device_kind_of(hosts[i]) == &bench_device_cpu);
    assert_true(bench_device_kind_of("cuda") == &bench_device_cuda);
    assert_true(bench_device_kind_of("cuda:3") == &bench_device_cuda);
    assert_true(bench_device_kind_of("hip:1") == &bench_device_hip);
    assert_true(bench_device_kind_of("sim:gfx950:1") == &bench_device_sim);
    assert_true(bench_device_kind_of("sim:sm_100:1") == &bench_device_sim_cuda_model);
    assert_true(bench_device_kind_of("sim:sm_90a") == &bench_device_sim_cuda_model);
    assert_true(bench_device_kind_of("sim:sm_120") == &bench_device_sim_cuda);
    assert_true(bench_device_kind_of("sim:tpu") == &bench_device_sim);
}

static void names_are_checked(void **state) {
    (void)state;
    const char *const names[] = {"cpu", "cpu:0", "cuda", "hip:9999", "sim:gfx950", "sim:sm_90a:3"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        assert_true(bench_device_is_name(names[i]));
    const char *const others[] = {"",      "tpu",      "cpu:3",      "cuda:",      "cuda:10000",
                                  "cudax", "sim",      "sim:foo",    "sim:gfx999", "sim:gfx",
                                  "hip:x", "sim:sm_9", "cuda:0:0",   "sim:",       "sim:gfx950x",
                                  "sim:0", "cuda 0",   "sim:gfx950:"};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        assert_false(bench_device_is_name(others[i]));
}

/* Tests that bench and the library have the same models of simulated devices. The library lists its
 * models in the error message for an unknown name of a device. */
static void models_are_the_librarys(void **state) {
    (void)state;
    const bench_device_kind *kind;
    bsmm_exec exec = BSMM_INIT(bsmm_exec);
    bsmm_matrix matrix = BSMM_INIT(bsmm_matrix);
    float element = 1, amax;
    matrix.format.elem = BSMM_ELEM_F32;
    matrix.rows = matrix.cols = 1;
    matrix.data = &element;
    matrix.data_bytes = sizeof element;
    exec.device = "sim:nonesuch";
    assert_int_not_equal(bsmm_amax_on(&exec, &matrix, &amax), BSMM_OK);
    const char *message = strstr(bsmm_error_message(), "one of ");
    if (!message) skip();
    message += strlen("one of ");
    char name[40];
    for (; !strncmp(message, "sim:", 4); message += strspn(message, ", ")) {
        const size_t length = strcspn(message, ",");
        snprintf(name, sizeof name, "%.*s", (int)length, message);
        assert_true(bench_device_is_name(name));
        message += length;
    }
    const char *all = bsmm_error_message();
    for (size_t i = 0; (kind = bench_device_kind_at(i)); i++) {
        for (const char *at = kind->models; at; at = strchr(at, '|')) {
            at += *at == '|';
            snprintf(name, sizeof name, "%s:%.*s,", kind->name, (int)strcspn(at, "|"), at);
            assert_non_null(strstr(all, name));
        }
    }
}

/* Tests that every device kind in bench/devices.def has all functions. Otherwise a missing
 * function would fail only where bench calls it. */
static void rows_are_whole(void **state) {
    (void)state;
    const bench_device_kind *k;
    for (size_t i = 0; (k = bench_device_kind_at(i)); i++) {
        assert_true(k->is_host == (i == 0));
        assert_true(k->open && k->close && k->stream && k->allocate && k->release && k->write);
        assert_true(k->read && k->copy && k->fill_words && k->wait && k->start_time);
        assert_true(k->finish_time != NULL);
        if (k->is_host) continue;
        assert_true(k->known && k->cache_bytes && k->begin_capture && k->end_capture);
        assert_true(k->launch && k->forget);
    }
}

static void check_memory(bench_device *device) {
    uint8_t bytes[1000], got[3 * 1024];
    void *memory, *poisoned;
    float value;
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)(i * 7);
    assert_true(bench_device_new_sets(device, bytes, sizeof bytes, 1024, 3, &memory));
    assert_int_equal((uintptr_t)memory % 64, 0);
    assert_true(bench_device_read(device, got, memory, sizeof got));
    for (size_t set = 0; set < 3; set++)
        assert_memory_equal(got + set * 1024, bytes, sizeof bytes);
    assert_true(bench_device_new(device, NULL, 7, &poisoned));
    assert_true(bench_device_read(device, got, poisoned, 7));
    assert_memory_equal(got, "\x5A\x5A\x5A\x5A\x5A\x5A\x5A", 7);
    assert_true(bench_device_fill_f32(device, memory, 1.5f, 2) && bench_device_wait(device));
    assert_true(bench_device_read(device, &value, (uint8_t *)memory + 4, sizeof value));
    assert_true(value == 1.5f);
    assert_false(bench_device_new(device, NULL, UINT64_MAX - 8, &memory));
    assert_null(memory);
}

static void memory_comes_back(void **state) {
    (void)state;
    bench_device *cuda = open_or_skip();
    check_memory(cuda);
    assert_non_null(strstr(bench_device_error(), "OUT_OF_MEMORY"));
    bench_device_close(cuda);
}

/* Fills one uint32 of device memory, number `turn`, with turn + 7. The test captures this call in a
 * graph, so each launch of the graph must fill the same uint32. */
static bool fill_turn(void *context, size_t turn) {
    bench_device *device = ((void **)context)[0];
    uint32_t *words = ((void **)context)[1];
    return device->kind->fill_words(device->state, words + turn, (uint32_t)(turn + 7), 1);
}

static void check_graph(bench_device *device) {
    void *memory, *context[2];
    uint32_t got[3];
    bench_graph graph = {0};
    bench_samples seconds = {0};
    assert_true(bench_device_new(device, NULL, sizeof got, &memory));
    context[0] = device, context[1] = memory;
    assert_true(bench_device_record(device, fill_turn, context, 3, &graph));
    assert_true(bench_device_read(device, got, memory, sizeof got));
    /* got[2] has its old value, because capturing a fill in a graph does not execute the fill. */
    assert_int_equal(got[2], 0x5A5A5A5A);
    assert_true(bench_device_time(device, &graph, &seconds));
    assert_true(bench_device_read(device, got, memory, sizeof got));
    for (uint32_t i = 0; i < 3; i++)
        assert_int_equal(got[i], i + 7);
    bench_device_forget(device, &graph);
    bench_samples_destroy(&seconds);
}

static void simulators_bring_memory_back(void **state) {
    (void)state;
    static const char *const names[] = {"sim:gfx942", "sim:gfx950", "sim:gfx950:1",
                                        "sim:sm_80",  "sim:sm_100", "sim:sm_100:1"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        bench_device *device = bench_device_open(names[i]);
        if (!device) fail_msg("%s: %s", names[i], bench_device_error());
        check_memory(device);
        assert_non_null(strstr(bench_device_error(), "OUT_OF_MEMORY"));
        check_graph(device);
        bench_device_close(device);
    }
    assert_null(bench_device_open("sim:gfx90a"));
    assert_non_null(strstr(bench_device_error(), "sim:gfx942"));
    assert_null(bench_device_open("sim:sm_70"));
    assert_non_null(strstr(bench_device_error(), "sim:sm_90a"));
}

static void host_memory_comes_back(void **state) {
    (void)state;
    bench_device *host = bench_device_open(NULL);
    assert_non_null(host);
    check_memory(host);
    assert_string_equal(bench_device_error(), "no memory");
    bench_device_close(host);
}

static void copies_are_timed(void **state) {
    (void)state;
    bench_device *cuda = open_or_skip();
    bench_samples rates = {0};
    assert_true(bench_device_time_copy(cuda, &rates) && bench_device_time_copy(cuda, &rates));
    printf("copy: %.0f GB/s\n", bench_samples_best(&rates) * 1e-9);
    assert_true(bench_samples_best(&rates) > 1e10);
    bench_samples_destroy(&rates);
    bench_device_close(cuda);
}

enum { ROWS = 256, COLS = 384, DEPTH = 512 };

static float *values_of(uint32_t elem, int64_t rows, uint64_t seed) {
    bsmm_matrix m = {0}, wide = {0};
    const bench_operand_kind kind = {.seed = seed};
    assert_int_equal(
        bench_operand_create(&m, &wide, (bsmm_format){.elem = elem}, rows, DEPTH, &kind), BSMM_OK);
    float *values = wide.data;
    wide.data = NULL;
    bench_matrix_destroy(&m);
    bench_matrix_destroy(&wide);
    return values;
}

static void expect_product(const float *got, uint32_t elem, double tolerance) {
    float *a = values_of(elem, ROWS, BENCH_FIRST_SEED);
    float *b = values_of(elem, COLS, BENCH_FIRST_SEED + 1);
    for (int r = 0; r < ROWS; r++)
        for (int c = 0; c < COLS; c++) {
            double exact = 0, magnitude = 0;
            for (int k = 0; k < DEPTH; k++) {
                double product = (double)a[r * DEPTH + k] * (double)b[c * DEPTH + k];
                exact += product;
                magnitude += fabs(product);
            }
            if (!(fabs((double)got[r * COLS + c] - exact) <= tolerance * magnitude))
                fail_msg("(%d, %d): got %g, exact %g, magnitude %g", r, c,
                         (double)got[r * COLS + c], exact, magnitude);
        }
    free(a);
    free(b);
}

/* Lists the tolerance of each cuBLASLt product as a multiple of sum |a||b|. FP8 tensor cores
 * truncate the accumulator after every 32 elements of K, so the tolerance of FP8 is larger than
 * that of bf16 and grows with K. */
static const double tolerances[BENCH_WAYS] = {
    [FP8] = DEPTH * 0x1p-17,
    [VEC128] = 128 * 0x1p-17,
    [BF16] = 0x1p-16,
};

static void cublaslt_multiplies(void **state) {
    (void)state;
    bench_device *cuda = open_or_skip();
    const bench_queued_peer *peer = &bench_cublaslt;
    void *library = peer->open();
    if (!library) {
        print_message("skipped: no cuBLASLt\n");
        skip();
    }
    const bench_queued_shape shape = {ROWS, COLS, DEPTH, BSMM_ELEM_F32, 2};
    float *got = malloc(sizeof *got * ROWS * COLS);
    for (size_t way = 0; way < BENCH_WAYS; way++) {
        lt_product *p = peer->create(library, cuda, way, &shape);
        print_message("%s: %s\n", peer->ways[way].name, p ? "there" : "no algorithm");
        if (!p) continue;
        for (size_t turn = 0; turn < 2; turn++) {
            assert_true(peer->run(p, turn) && bench_device_wait(cuda));
            assert_true(bench_device_read(cuda, got, (char *)p->d + turn * p->d_bytes,
                                          sizeof *got * ROWS * COLS));
            expect_product(got, way == BF16 ? BSMM_ELEM_BF16 : BSMM_ELEM_E4M3, tolerances[way]);
        }
        peer->destroy(p);
    }
    free(got);
    peer->close(library);
    bench_device_close(cuda);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_told_apart),    cmocka_unit_test(names_are_checked),
        cmocka_unit_test(models_are_the_librarys), cmocka_unit_test(rows_are_whole),
        cmocka_unit_test(host_memory_comes_back),  cmocka_unit_test(simulators_bring_memory_back),
        cmocka_unit_test(memory_comes_back),       cmocka_unit_test(copies_are_timed),
        cmocka_unit_test(cublaslt_multiplies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
