/* Computes what each PTX instruction costs in the time model. The assembler turns most PTX
 * instructions into one instruction of the GPU, and removes some, which cost nothing. */
#include "time_replay.h"
#include <stdlib.h>
#include <string.h>

/* These constants are cycles. An SM has four partitions, and the number of lanes that a pipe serves
 * in a cycle is taken from CUDA's table of arithmetic throughput for compute capability 9.0 and
 * 10.0. An SM gives per cycle 128 results of 32-bit FMA, 64 of integers, 16 of transcendental
 * functions and 32 of shuffles. */
enum { LATENCY = 4, ALU_CYCLES = 2, FMA_CYCLES = 1, SPECIAL_CYCLES = 8, SHUFFLE_CYCLES = 4 };

/* Maps the beginnings of opcodes to costs. The first entry that matches an opcode counts. */
static const struct {
    const char *opcode;
    uint8_t special, pipe, queue;
} opcodes[] = {
    {"mov.", RENAMED, 0, 0},
    {"cvta.", RENAMED, 0, 0},
    {"ld.param", RENAMED, 0, 0},
    {"ld.const", RENAMED, 0, 0},
    {"cvt.u64.u32", RENAMED, 0, 0},
    {"cvt.u32.u64", RENAMED, 0, 0},
    {"ld.", ACCESS, PIPE_ACCESS, 0},
    {"ldu.", ACCESS, PIPE_ACCESS, 0},
    {"st.", ORDINARY, PIPE_ACCESS, 0},
    {"atom.", ACCESS, PIPE_ACCESS, 0},
    {"red.", ORDINARY, PIPE_ACCESS, 0},
    {"ldmatrix.", ACCESS, PIPE_ACCESS, 0},
    {"stmatrix.", ORDINARY, PIPE_ACCESS, 0},
    {"cp.async.commit_group", COMMITS, PIPE_NONE, QUEUE_COPIES},
    {"cp.async.wait", WAITS, PIPE_NONE, QUEUE_COPIES},
    {"cp.async.bulk.commit_group", COMMITS, PIPE_NONE, QUEUE_BULK},
    {"cp.async.bulk.wait_group", WAITS, PIPE_NONE, QUEUE_BULK},
    {"cp.", ORDINARY, PIPE_ACCESS, 0},
    {"wgmma.mma_async", MULTIPLIES, PIPE_NONE, QUEUE_PRODUCTS},
    {"wgmma.commit_group", COMMITS, PIPE_NONE, QUEUE_PRODUCTS},
    {"wgmma.wait_group", WAITS, PIPE_NONE, QUEUE_PRODUCTS},
    {"tcgen05.ld", TENSOR_MEMORY, PIPE_NONE, 0},
    {"tcgen05.st", TENSOR_MEMORY, PIPE_NONE, 0},
    {"tcgen05.wait", WAITS_TENSOR_MEMORY, PIPE_NONE, 0},
    {"mma.", ORDINARY, PIPE_TENSOR, 0},
    {"ex2.", ORDINARY, PIPE_SPECIAL, 0},
    {"lg2.", ORDINARY, PIPE_SPECIAL, 0},
    {"rcp.", ORDINARY, PIPE_SPECIAL, 0},
    {"rsqrt.", ORDINARY, PIPE_SPECIAL, 0},
    {"sqrt.", ORDINARY, PIPE_SPECIAL, 0},
    {"sin.", ORDINARY, PIPE_SPECIAL, 0},
    {"cos.", ORDINARY, PIPE_SPECIAL, 0},
    {"tanh.", ORDINARY, PIPE_SPECIAL, 0},
    {"div.", ORDINARY, PIPE_SPECIAL, 0},
    {"fma.", ORDINARY, PIPE_FMA, 0},
    {"mul.", ORDINARY, PIPE_FMA, 0},
    {"mad.", ORDINARY, PIPE_FMA, 0},
    {"add.", ORDINARY, PIPE_FMA, 0},
    {"sub.", ORDINARY, PIPE_FMA, 0},
};

/* Lists the first parts of the names of some opcodes, e.g. of barriers and branches. The time model
 * assumes that the assembler moves no instruction from one side of such an opcode to the other. */
static const char *const orderings[] = {"bra",        "brx",         "call",          "ret",
                                        "exit",       "bar",         "membar",        "fence",
                                        "mbarrier",   "nanosleep",   "atom",          "ld.acquire",
                                        "ld.relaxed", "ld.volatile", "griddepcontrol"};

static bool orders(const char *opcode) {
    for (size_t k = 0; k < sizeof orderings / sizeof *orderings; k++)
        if (strncmp(opcode, orderings[k], strlen(orderings[k])) == 0) return true;
    return false;
}

static uint32_t number_after(const char *text, char letter) {
    const char *at = text ? strchr(text, letter) : NULL;
    return at ? (uint32_t)strtoul(at + 1, NULL, 10) : 0;
}

static void size_product(ptx_class *c, const ptx_inst *i, const ptx_device *d, const char *shape,
                         double rows, double rate) {
    const uint32_t n = number_after(shape + 1, 'n'), k = number_after(shape + 1, 'k');
    const uint32_t given = ptx_types[i->opcode->types[1]].bits, bits = given ? given : 8;
    c->cycles = (float)(rows * n * k * bits / 16 / (rate / PARTITIONS));
    c->latency = c->cycles + (float)d->tensor_latency;
    /* The bytes of shared memory that a wgmma reads are divided among its four warps: each warp
     * reads a quarter of B, which all of them use, and its own 16 rows of A, unless A is in
     * registers. */
    c->bytes = (n * k / PARTITIONS + (i->op[1].place == REG ? 16 * k : 0)) * bits / 8;
}

static uint32_t arithmetic_cycles(const ptx_inst *i, uint8_t *pipe) {
    const ptx_type_info *type = &ptx_types[i->opcode->types[0]];
    const bool is_float = type->kind == FLOAT;
    if (strncmp(i->opcode->text, "shfl", 4) == 0) return SHUFFLE_CYCLES;
    if (*pipe == PIPE_SPECIAL) return SPECIAL_CYCLES;
    /* The FMA pipe multiplies integers at half the rate of floats. */
    if (*pipe == PIPE_FMA && !is_float) *pipe = i->opcode->text[0] == 'm' ? PIPE_FMA : PIPE_ALU;
    const uint32_t wide = type->bits == 64 ? 2 : 1;
    return wide * (*pipe == PIPE_FMA && is_float ? FMA_CYCLES : ALU_CYCLES);
}

/* Returns the number of 32-bit registers of each thread that tcgen05.ld or tcgen05.st moves. */
static uint32_t registers(const ptx_inst *i) {
    uint32_t most = 1;
    for (uint32_t k = 0; k < i->count; k++)
        if (i->op[k].place == VECTOR && i->op[k].count > most) most = i->op[k].count;
    return most;
}

/* Returns a mask of the operands that an instruction writes. bind.c explains the letters that
 * describe operands. */
static uint32_t results_of(const ptx_inst *i) {
    const char *letters = i->opcode->row->operands;
    uint32_t mask = 0, at = 0;
    if (!letters) return 1;
    for (; *letters; letters++)
        if (*letters != '|' && *letters != '?')
            mask |= (uint32_t)(strchr("phrlqtscvywz", *letters) != NULL) << at++;
    return mask;
}

ptx_class ptx_class_of(const ptx_inst *i, const ptx_device *d) {
    const char *text = i->opcode->text;
    ptx_class c = {
        .special = ORDINARY, .pipe = PIPE_ALU, .latency = LATENCY, .results = results_of(i)};
    c.ordering = orders(text);
    for (size_t k = 0; k < sizeof opcodes / sizeof *opcodes; k++) {
        if (strncmp(text, opcodes[k].opcode, strlen(opcodes[k].opcode)) != 0) continue;
        c.special = opcodes[k].special, c.pipe = opcodes[k].pipe, c.queue = opcodes[k].queue;
        break;
    }
    if (c.special == MULTIPLIES)
        size_product(&c, i, d, strstr(text, ".m64"), 16, d->tensor_rate);
    else if (c.pipe == PIPE_TENSOR)
        size_product(&c, i, d, strstr(text, ".m"), number_after(strstr(text, ".m"), 'm'),
                     d->warp_tensor_rate);
    else if (c.special == TENSOR_MEMORY)
        c.cycles = (float)registers(i), c.latency = c.cycles + (float)d->shared_latency;
    else if (c.pipe == PIPE_ACCESS)
        c.cycles = 1;
    else if (c.special == ORDINARY)
        c.cycles = (float)arithmetic_cycles(i, &c.pipe);
    return c;
}
