/* Decodes each instruction of a code object once, before the first launch. It parses the text that
 * LLVM's disassembler prints, and stores the opcode's table entry, the operands and the modifiers.
 */
#include "check.h"
#include "disassemble.h"
#include "hazards.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const gfx9_table *const tables[] = {
    &gfx9_salu_table,   &gfx9_valu_table, &gfx9_convert_table, &gfx9_special_table,
    &gfx9_memory_table, &gfx9_lds_table,  &gfx9_mfma_table};

enum { TABLES = 7 };
_Static_assert(sizeof tables == TABLES * sizeof(void *), "all tables are looked through");

static int by_name(const void *a, const void *b) {
    return strcmp(((const gfx9_row *)a)->name, ((const gfx9_row *)b)->name);
}

static gfx9_row *sorted;
static size_t row_count;
static pthread_once_t sorting = PTHREAD_ONCE_INIT;
static void sort_rows(void) {
    size_t count = 0;
    for (size_t t = 0; t < TABLES; t++)
        count += tables[t]->count;
    sorted = malloc(count * sizeof *sorted);
    for (size_t t = 0; sorted && t < TABLES; t++)
        for (size_t i = 0; i < tables[t]->count; i++)
            sorted[row_count++] = tables[t]->rows[i];
    if (sorted) qsort(sorted, row_count, sizeof *sorted, by_name);
}

const gfx9_row *gfx9_find_row(const char *name, size_t length) {
    char key[64];
    pthread_once(&sorting, sort_rows);
    if (length >= sizeof key || !sorted) return NULL;
    memcpy(key, name, length), key[length] = 0;
    const gfx9_row wanted = {.name = key};
    return bsearch(&wanted, sorted, row_count, sizeof *sorted, by_name);
}

const char *gfx9_row_name(size_t number) {
    pthread_once(&sorting, sort_rows);
    return number < row_count ? sorted[number].name : NULL;
}

static const struct {
    const char *name;
    uint8_t place, reg, count;
    uint64_t value;
} named[] = {
    {"vcc", SGPR, VCC, 2, 0},
    {"vcc_lo", SGPR, VCC, 1, 0},
    {"vcc_hi", SGPR, VCC + 1, 1, 0},
    {"exec", SGPR, EXEC, 2, 0},
    {"exec_lo", SGPR, EXEC, 1, 0},
    {"exec_hi", SGPR, EXEC + 1, 1, 0},
    {"m0", SGPR, M0, 1, 0},
    {"flat_scratch", SGPR, FLAT_SCRATCH, 2, 0},
    {"flat_scratch_lo", SGPR, FLAT_SCRATCH, 1, 0},
    {"flat_scratch_hi", SGPR, FLAT_SCRATCH + 1, 1, 0},
    {"xnack_mask", SGPR, 104, 2, 0},
    {"off", OFF, 0, 0, 0},
    {"src_shared_base", CONSTANT, 0, 0, 1ull << 48},
    {"src_shared_limit", CONSTANT, 0, 0, (1ull << 48) | 0xffffffff},
    {"src_private_base", CONSTANT, 0, 0, 2ull << 48},
    {"src_private_limit", CONSTANT, 0, 0, (2ull << 48) | 0xffffffff},
    {"src_scc", SCC_BIT, 0, 0, 0},
    {"scc", SCC_BIT, 0, 0, 0},
};

static bool parse_register(const char *t, gfx9_operand *o) {
    int first, last, used = 0;
    const char letter = *t;
    const bool trap = strncmp(t, "ttmp", 4) == 0;
    if (letter != 'v' && letter != 'a' && letter != 's' && !trap) return false;
    t += trap ? 4 : 1;
    if (sscanf(t, "[%d:%d]%n", &first, &last, &used) != 2 || t[used]) {
        used = 0;
        if (sscanf(t, "%d%n", &first, &used) != 1 || t[used]) return false;
        last = first;
    }
    if (first < 0 || last < first || last - first > 63 || last > 255) return false;
    o->place = letter == 'v' || letter == 'a' ? VGPR : SGPR;
    o->count = (uint8_t)(last - first + 1);
    o->reg = (uint16_t)(first + (letter == 'a' ? 256 : trap ? 108 : 0));
    return o->place == VGPR || last < 108;
}

static bool parse_number(const char *t, gfx9_operand *o) {
    char *end;
    if (strchr(t, '.') && strncmp(t, "0x", 2) != 0) {
        o->place = CONSTANT, o->real = true, o->number = strtod(t, &end);
        return *end == 0;
    }
    o->place = CONSTANT, o->value = (uint64_t)strtoll(t, &end, 0),
    o->literal = strncmp(t, "0x", 2) == 0;
    if (o->literal) o->value = strtoull(t, &end, 0);
    return end != t && *end == 0;
}

static bool parse_operand(char *t, gfx9_operand *o) {
    size_t n = strlen(t);
    o->sel = SEL_DWORD, o->half_hi = 1;
    static const char *const wraps[] = {"abs(", "neg(", "sext(", "lit("};
    for (int again = 1; again;) {
        again = 0;
        if (n > 1 && *t == '-' && (t[1] < '0' || t[1] > '9')) o->neg ^= 1, t++, n--, again = 1;
        if (n > 2 && *t == '|' && t[n - 1] == '|') o->abs = 1, t[n - 1] = 0, t++, n -= 2, again = 1;
        for (int i = 0; i < 4; i++) {
            const size_t w = strlen(wraps[i]);
            if (n <= w || strncmp(t, wraps[i], w) != 0 || t[n - 1] != ')') continue;
            o->abs |= i == 0, o->neg ^= i == 1, o->sext |= i == 2;
            t[n - 1] = 0, t += w, n -= w + 1, again = 1;
        }
    }
    for (size_t i = 0; i < sizeof named / sizeof *named; i++)
        if (strcmp(t, named[i].name) == 0) {
            o->place = named[i].place, o->reg = named[i].reg, o->count = named[i].count,
            o->value = named[i].value;
            return true;
        }
    return parse_register(t, o) || parse_number(t, o);
}

uint64_t gfx9_constant(const gfx9_operand *o, int type) {
    if (o->real) {
        /* `turns` is true for the inline constant 1 / (2 pi). LLVM prints only a few of its digits,
         * so the code below returns the exact bits. */
        const bool turns = o->number > 0.159 && o->number < 0.16;
        const double d = o->number;
        const float f = (float)d;
        uint64_t wide;
        uint32_t u;
        memcpy(&wide, &d, 8), memcpy(&u, &f, 4);
        if (type == F64 || type == U64 || type == I64) return turns ? 0x3fc45f306dc9c882 : wide;
        if (type == F16 || type == PK || type == U16 || type == I16) {
            if (turns) return 0x3118;
            return u == 0 ? 0
                          : (u >> 16 & 0x8000) | ((((u >> 23) & 255) - 112) << 10) |
                                ((u >> 13) & 0x3ff);
        }
        return turns ? 0x3e22f983 : u;
    }
    if (type == F64 && o->literal) return o->value << 32;
    if (type == I64 && o->literal) return (uint64_t)(int64_t)(int32_t)o->value;
    return o->value;
}

static int list(const char *t, int *values) {
    int n = 0;
    for (const char *p = strchr(t, '['); p && n < 8; p = strchr(p + 1, ','))
        values[n++] = (int)strtol(p + 1, NULL, 0);
    return n;
}

/* Stores one of the modifiers op_sel, op_sel_hi, neg_lo and neg_hi (`which` is 0 to 3) in the
 * operands. The modifier's values belong to the sources in order. A further value of op_sel
 * belongs to the destination. */
static void spread(gfx9_inst *i, const char *t, int which) {
    int values[8] = {0}, n = list(t, values);
    const int sources = i->operand_count - 1;
    for (int k = 0; k < n; k++) {
        gfx9_operand *o = &i->op[k < sources ? k + 1 : 0];
        uint8_t *const field[] = {&o->half_lo, &o->half_hi, &o->neg_lo, &o->neg_hi};
        *field[which] = (uint8_t)values[k];
    }
}

static int selection(const char *t) {
    static const char *const names[] = {"BYTE_0", "BYTE_1", "BYTE_2", "BYTE_3",
                                        "WORD_0", "WORD_1", "DWORD"};
    for (int i = 0; i < 7; i++)
        if (strcmp(t, names[i]) == 0) return i;
    return SEL_DWORD;
}

static const struct {
    const char *name;
    int control;
} dpp[] = {{"row_shl:", DPP_ROW_SHL},
           {"row_shr:", DPP_ROW_SHR},
           {"row_ror:", DPP_ROW_ROR},
           {"wave_shl:", DPP_WAVE_SHL},
           {"wave_rol:", DPP_WAVE_ROL},
           {"wave_shr:", DPP_WAVE_SHR},
           {"wave_ror:", DPP_WAVE_ROR},
           {"row_mirror", DPP_MIRROR},
           {"row_half_mirror", DPP_HALF_MIRROR},
           {"row_bcast:15", DPP_BCAST15},
           {"row_bcast:31", DPP_BCAST31},
           {"row_newbcast:", DPP_NEWBCAST}};

static bool starts(const char *t, const char *prefix) {
    return strncmp(t, prefix, strlen(prefix)) == 0;
}

static bool parse_dpp(gfx9_inst *i, const char *t) {
    if (starts(t, "quad_perm:")) {
        int v[8] = {0};
        list(t, v);
        i->dpp_control =
            DPP_QUAD | (v[0] & 3) << 8 | (v[1] & 3) << 10 | (v[2] & 3) << 12 | (v[3] & 3) << 14;
        return i->dpp = true;
    }
    for (size_t k = 0; k < sizeof dpp / sizeof *dpp; k++)
        if (starts(t, dpp[k].name)) {
            const char *colon = strchr(t, ':');
            i->dpp_control = dpp[k].control | (colon ? (int)strtol(colon + 1, NULL, 0) << 8 : 0);
            return i->dpp = true;
        }
    return false;
}

static bool parse_modifier(gfx9_inst *i, const char *t) {
    const char *colon = strchr(t, ':');
    const int value = colon ? (int)strtol(colon + 1, NULL, 0) : 0;
    static const char *const spreads[] = {"op_sel:", "op_sel_hi:", "neg_lo:", "neg_hi:"};
    for (int k = 0; k < 4; k++)
        if (starts(t, spreads[k])) return spread(i, t, k), true;
    for (int k = 0; k < 2; k++)
        if (starts(t, k ? "src1_sel:" : "src0_sel:"))
            return i->op[i->first + k].sel = (uint8_t)selection(colon + 1), true;
    if (starts(t, "dst_sel:")) return i->dst_sel = (uint8_t)selection(colon + 1), true;
    if (starts(t, "dst_unused:"))
        return i->dst_unused =
                   starts(colon + 1, "UNUSED_PRESERVE") ? 2 : starts(colon + 1, "UNUSED_SEXT"),
               true;
    if (starts(t, "offset:")) return i->offset = value, true;
    if (starts(t, "offset0:")) return i->offset = value, true;
    if (starts(t, "offset1:")) return i->offset1 = value, true;
    if (starts(t, "bitop3:")) return i->bitop3 = (uint8_t)value, true;
    if (starts(t, "cbsz:")) return i->cbsz = (uint8_t)value, true;
    if (starts(t, "abid:")) return i->abid = (uint8_t)value, true;
    if (starts(t, "blgp:")) return i->blgp = (uint8_t)value, true;
    if (starts(t, "mul:")) return i->omod = value == 2 ? 1 : 2, true;
    if (starts(t, "div:")) return i->omod = 3, true;
    if (starts(t, "row_mask:")) return i->dpp_rows = (uint8_t)value, true;
    if (starts(t, "bank_mask:")) return i->dpp_banks = (uint8_t)value, true;
    if (starts(t, "bound_ctrl:")) return i->dpp_bound = 1, true;
    if (strcmp(t, "clamp") == 0) return i->clamp = true;
    if (strcmp(t, "offen") == 0) return i->offen = true;
    if (strcmp(t, "idxen") == 0) return i->idxen = true;
    if (strcmp(t, "lds") == 0) return i->lds = true;
    if (strcmp(t, "glc") == 0 || strcmp(t, "sc0") == 0) return i->glc = true;
    if (!strcmp(t, "sc1") || !strcmp(t, "nt") || !strcmp(t, "slc") || !strcmp(t, "scc") ||
        starts(t, "fi:"))
        return true;
    return parse_dpp(i, t);
}

/* Returns the next token of an instruction's text and advances *p. A token ends at a blank or
 * comma outside brackets. Sets *operand to true if an operand can follow, i.e. after a comma or
 * the instruction's name. */
static char *token(char **p, bool *operand) {
    char *t = *p;
    while (*t == ' ' || *t == '\t')
        t++;
    if (!*t) return NULL;
    int depth = 0;
    char *e = t;
    for (; *e && (depth || (*e != ' ' && *e != ',')); e++)
        depth += (*e == '[' || *e == '(') - (*e == ']' || *e == ')');
    *operand = *e == ',';
    *p = *e ? e + 1 : e;
    *e = 0;
    return t;
}

static bool takes_words(const char *name) {
    static const char *const names[] = {"s_waitcnt", "s_setreg",           "s_getreg",
                                        "s_sendmsg", "s_set_gpr_idx_mode", "s_set_gpr_idx_off"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (starts(name, names[i])) return true;
    return false;
}

static bool parse(gfx9_inst *i, char *text) {
    static const char *const encodings[] = {"_e64_dpp", "_e32", "_e64", "_sdwa", "_dpp"};
    char *p = text;
    bool operand = true, after_comma = true;
    char *name = token(&p, &operand);
    if (!name) return false;
    size_t length = strlen(name);
    for (int e = 0; e < 5; e++) {
        const size_t n = strlen(encodings[e]);
        if (length > n && strcmp(name + length - n, encodings[e]) == 0) {
            length -= n, i->sdwa = e == 3, i->vop3 = e == 2;
            break;
        }
    }
    i->row = gfx9_find_row(name, length);
    if (!i->row) return false;
    const bool words = takes_words(name);
    /* Instructions such as v_add_co_u32 have two destinations, the result and the carry, so their
     * first source is operand 2. */
    i->first =
        length > 7 && memcmp(name, "v_", 2) == 0 && (strstr(name, "_co_u32") != NULL) ? 2 : 1;
    after_comma = true;
    for (char *t; (t = token(&p, &operand)) != NULL; after_comma = operand) {
        if (after_comma && i->operand_count < 8 && !(words && !starts(name, "s_getreg")) &&
                    !strchr(t, ':')
                ? parse_operand(t, &i->op[i->operand_count])
                : after_comma && strchr(t, '[') && i->operand_count < 8 &&
                      (*t == 'v' || *t == 's' || *t == 'a' || *t == '-' || *t == '|' || *t == 't' ||
                       *t == 'n') &&
                      !starts(t, "neg_") && parse_operand(t, &i->op[i->operand_count])) {
            i->operand_count++;
            continue;
        }
        if (words || strncmp(t, "gpr_idx(", 8) == 0) {
            if (*t != 'h' && after_comma && starts(name, "s_setreg")) parse_operand(t, &i->op[0]);
            if (starts(name, "s_getreg") && i->operand_count == 0) return false;
            continue;
        }
        if (!parse_modifier(i, t)) return false;
    }
    return true;
}

static void find_last_registers(gfx9_inst *i) {
    for (uint32_t k = 0; k < i->operand_count; k++) {
        if (i->op[k].place != VGPR) continue;
        const uint32_t reg = i->op[k].reg, end = reg % 256 + i->op[k].count;
        uint16_t *last = reg < 256 ? &i->vgprs : &i->agprs;
        if (end > *last) *last = (uint16_t)end;
    }
}

/* Removes the comments that LLVM prints for operands that the processor ignores. */
static void strip_remarks(char *text) {
    for (char *from; (from = strstr(text, "/*")) != NULL;) {
        char *to = strstr(from, "*/");
        if (!to) return;
        memmove(from, to + 2, strlen(to + 2) + 1);
    }
}

typedef struct {
    gfx9_object *object;
    uint32_t room;
} growing;

static bool take(void *user, uint64_t address, uint32_t bytes, const char *text) {
    growing *g = user;
    gfx9_object *object = g->object;
    if (address + (bytes ? bytes : 4) > object->image_size || bytes > 16) return false;
    if (object->code_count == g->room) {
        const uint32_t room = g->room ? 2 * g->room : 1024;
        gfx9_inst *more = realloc(object->code, room * sizeof *more);
        if (!more) return false;
        object->code = more, g->room = room;
    }
    gfx9_inst *i = &object->code[object->code_count++];
    memset(i, 0, sizeof *i);
    i->address = address, i->bytes = (uint8_t)(bytes ? bytes : 4), i->target = -1;
    i->dst_sel = SEL_DWORD, i->dpp_rows = i->dpp_banks = 15;
    for (int k = 0; k < 8; k++)
        i->op[k].sel = SEL_DWORD, i->op[k].half_hi = 1;
    memcpy(i->word, object->image + address, i->bytes);
    while (*text == '\t' || *text == ' ')
        text++;
    i->text = strdup(bytes ? text : "(no instruction)");
    char copy[512];
    if (!i->text) return false;
    snprintf(copy, sizeof copy, "%s", i->text);
    strip_remarks(copy);
    /* An instruction that cannot be parsed has no table entry. The simulator stops a kernel with
     * an error only if the kernel executes such an instruction. */
    if (!bytes || !parse(i, copy)) i->row = NULL;
    if (i->row) i->record = gfx9_record_of(i);
    find_last_registers(i);
    return true;
}

static int by_address(const void *a, const void *b) {
    const gfx9_inst *x = a, *y = b;
    return (x->address > y->address) - (x->address < y->address);
}

/* Finds the target instruction of a branch. A branch encodes its distance from the next
 * instruction in words of 4 bytes. */
static void resolve(gfx9_object *object, gfx9_inst *i) {
    if (!i->row || i->row->cost != COST_BRANCH) return;
    const uint64_t to = i->address + 4 + (uint64_t)(4 * (int64_t)(int16_t)i->word[0]);
    if (to < object->image_size) i->target = object->index[to / 4];
}

bool gfx9_decode(gfx9_object *object, char *error) {
    growing g = {object, 0};
    if (!gfx9_disassemble(object, take, &g, error)) return false;
    if (object->code_count)
        qsort(object->code, object->code_count, sizeof *object->code, by_address);
    const uint64_t words = object->image_size / 4 + 1;
    object->index = malloc(words * sizeof *object->index);
    if (!object->index) return snprintf(error, 256, "out of memory"), false;
    memset(object->index, 0xff, words * sizeof *object->index);
    for (uint32_t k = 0; k < object->code_count; k++)
        object->index[object->code[k].address / 4] = (int32_t)k;
    for (uint32_t k = 0; k < object->code_count; k++) {
        const gfx9_row *row = object->code[k].row;
        resolve(object, &object->code[k]);
        gfx9_hazards_of(&object->code[k]);
        gfx9_accesses_of(&object->code[k]);
        object->orders |= row && row->cost == COST_VMEM && strstr(row->name, "atomic");
    }
    return true;
}
