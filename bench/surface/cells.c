/* Reads cells (GEMMs to time), one per line, and prints a JSON line for each.
 *
 * A line holds the formats of A, B and D, then M, N and K: "bf16 mxfp4 bf16 16 4096 4096". A format
 * is a preset, an element, or ELEMENT/f32/ROWSxCOLS for fp32 scales of blocks of this shape, where
 * 0 columns mean a whole row. The first line of the output describes the machine. For a GPU it has
 * the speed of copying device memory, and the rates of FP8 and bf16 GEMMs of 8192 x 8192 x 8192 by
 * the library with which bench compares. For the host it has OpenMP's number of threads, and the
 * libraries that were found. Each cell's line for the host also has the peak rates that were
 * measured together with the cell. */
#include "surface.h"

#include <stdio.h>
#include <string.h>

static bool parse_format(const char *word, int64_t k, bsmm_format *format) {
    char elem[32];
    unsigned rows = 0, cols = 0;
    if (!bsmm_format_from_name(word, format)) return true;
    if (sscanf(word, "%31[^/]/f32/%ux%u", elem, &rows, &cols) != 3 ||
        bsmm_format_from_name(elem, format))
        return false;
    format->scale = BSMM_SCALE_F32;
    format->block_rows = rows;
    format->block_cols = cols ? cols : (uint32_t)k;
    return true;
}

static bool parse_cell(const char *line, surface_cell *cell) {
    char a[48], b[48], d[48];
    long long m, n, k;
    if (sscanf(line, "%47s %47s %47s %lld %lld %lld", a, b, d, &m, &n, &k) != 6) return false;
    cell->m = m, cell->n = n, cell->k = k;
    return m > 0 && n > 0 && k > 0 && parse_format(a, k, &cell->a) &&
           parse_format(b, k, &cell->b) && parse_format(d, k, &cell->d);
}

static void print_text(const char *text) {
    for (; *text; text++)
        if (*text == '"' || *text == '\\' || (unsigned char)*text < ' ')
            putchar(' ');
        else
            putchar(*text);
}

static void print_machine(surface *s) {
    enum { CUBE = 8192, ROUNDS = 5 };
    bsmm_local_device local = BSMM_INIT(bsmm_local_device);
    bench_samples copies = {0};
    double operations = 2.0 * CUBE * CUBE * CUBE;
    bench_device_find(s->name, &local);
    for (int i = 0; i < ROUNDS && bench_device_time_copy(s->device, &copies); i++)
        continue;
    surface_times fp8 = surface_run_peer(s, 8, CUBE, CUBE, CUBE);
    surface_times bf16 = surface_run_peer(s, 16, CUBE, CUBE, CUBE);
    printf("{\"machine\": \"");
    print_text(local.title);
    printf("\", \"copy\": %.6g, \"fp8\": %.6g, \"bf16\": %.6g}\n", bench_samples_best(&copies),
           fp8.burst > 0 ? operations / fp8.burst : 0,
           bf16.burst > 0 ? operations / bf16.burst : 0);
    fflush(stdout);
    bench_samples_destroy(&copies);
}

static void print_host(const surface *s) {
    bsmm_local_device local = BSMM_INIT(bsmm_local_device);
    bench_device_find(s->name, &local);
    printf("{\"machine\": \"");
    print_text(local.title);
    printf(", threads: %d", surface_threads());
    for (int i = 0; i < BENCH_PEERS; i++)
        printf(", %s", s->host_peers[i].library ? s->host_peers[i].version : "a peer is absent");
    printf("\", \"host\": true}\n");
    fflush(stdout);
}

static void print_result(const char *line, const surface_result *r) {
    printf("{\"cell\": \"%.*s\", \"kernel\": \"%s\", \"why\": \"", (int)strcspn(line, "\n"), line,
           r->kernel);
    print_text(r->why);
    printf("\", \"bytes\": %llu, \"packed_bytes\": %llu, \"burst\": %.6g, \"steady\": %.6g, "
           "\"bf16_burst\": %.6g, \"bf16_steady\": %.6g",
           (unsigned long long)r->bytes, (unsigned long long)r->packed_bytes, r->ours.burst,
           r->ours.steady, r->bf16.burst, r->bf16.steady);
    if (r->unit)
        printf(", \"sgemm\": %.6g, \"unit\": \"%s\", \"unit_rate\": %.6g, \"read\": %.6g", r->sgemm,
               r->unit, r->unit_rate, r->read_rate);
    printf("}\n");
    fflush(stdout);
}

static int run_cells(surface *s, FILE *cells) {
    char line[256];
    int bad = 0;
    while (fgets(line, sizeof line, cells)) {
        surface_cell cell;
        surface_result result;
        if (!parse_cell(line, &cell)) {
            fprintf(stderr, "no cell: %s", line);
            bad++;
            continue;
        }
        if (s->device->kind->is_host)
            surface_run_host(s, &cell, &result);
        else
            surface_run(s, &cell, &result);
        print_result(line, &result);
    }
    return bad ? 2 : 0;
}

static int run_on_host(surface *s, FILE *cells) {
    bench_peers_open(s->host_peers, surface_threads());
    print_host(s);
    int status = run_cells(s, cells);
    bench_peers_close(s->host_peers);
    return status;
}

static int run_on_gpu(surface *s, FILE *cells) {
    const bench_queued_peer *peer = s->device->kind->peer;
    s->peer = peer ? peer->open() : NULL;
    print_machine(s);
    int status = run_cells(s, cells);
    surface_free_pools(s);
    if (peer && s->peer) peer->close(s->peer);
    return status;
}

int surface_run_all(const char *device, FILE *cells) {
    surface s = {.name = device, .device = bench_device_open(device)};
    /* If no other kind of device has the name, bench_device_open opens the host. A misspelled name
     * would therefore mean the host, so the name is compared with the host's name here. */
    bool is_host = s.device && s.device->kind->is_host;
    if (!s.device || (is_host && strcmp(s.name, s.device->kind->name) != 0)) {
        fprintf(stderr, "%s: %s\n", s.name, s.device ? "no such device" : bench_device_error());
        bench_device_close(s.device);
        return 2;
    }
    int status = is_host ? run_on_host(&s, cells) : run_on_gpu(&s, cells);
    bench_device_close(s.device);
    return status;
}
