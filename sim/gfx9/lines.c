/* Reads the line table of a code object (DWARF 4 and 5, section .debug_line). The simulator
 * uses the table to name lines of source in error messages and in lists of stalls. Compilers write
 * the table with -g or -gline-tables-only. If it is damaged, an instruction may have no line. */
#include "lines.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Reads bytes from `at` on. Past `end` every read returns 0 and sets `bad`. */
typedef struct {
    const uint8_t *at, *end;
    bool bad;
} reader;

typedef struct {
    uint64_t address;
    uint32_t file, line; /* The line is 0 where a sequence of instructions ends. */
} line_row;

struct gfx9_lines {
    line_row *rows;
    size_t count, room;
    char **files;
    uint32_t file_count;
};

static uint64_t fixed(reader *r, size_t bytes) {
    uint64_t v = 0;
    if ((size_t)(r->end - r->at) < bytes || bytes > 8) return r->bad = true, 0;
    memcpy(&v, r->at, bytes);
    r->at += bytes;
    return v;
}

static uint64_t leb(reader *r, bool sign) {
    uint64_t v = 0, byte = 128;
    uint32_t shift = 0;
    for (; byte & 128 && !r->bad; shift += 7) {
        byte = fixed(r, 1);
        if (shift < 64) v |= (byte & 127) << shift;
    }
    return sign && (byte & 64) && shift < 64 ? v | ~0ull << shift : v;
}

static void skip(reader *r, uint64_t bytes) {
    if ((uint64_t)(r->end - r->at) < bytes)
        r->bad = true, r->at = r->end;
    else
        r->at += bytes;
}

static const char *string(reader *r) {
    const char *text = (const char *)r->at;
    const uint8_t *end = r->at < r->end ? memchr(r->at, 0, (size_t)(r->end - r->at)) : NULL;
    if (!end) return r->bad = true, "";
    r->at = end + 1;
    return text;
}

/* Reads a value that is stored in one of the DWARF forms that a table of file names uses. Returns
 * its text, or NULL if it is a number. */
static const char *form_value(reader *r, uint64_t form, const gfx9_debug *d) {
    enum { DATA2 = 5, STRING = 8, BLOCK = 9, DATA1 = 11, STRP = 14, UDATA = 15, DATA16 = 30 };
    enum { LINE_STRP = 31 };
    const bool in_lines = form == LINE_STRP;
    if (form == STRING) return string(r);
    if (form == STRP || in_lines) {
        const uint64_t at = fixed(r, 4), size = in_lines ? d->line_str_size : d->str_size;
        const uint8_t *from = in_lines ? d->line_str : d->str;
        if (at >= size) return "";
        reader text = {from + at, from + size, false};
        return string(&text);
    }
    if (form == BLOCK)
        skip(r, leb(r, false));
    else if (form == UDATA)
        leb(r, false);
    else if (form == DATA1 || form == DATA2 || form == DATA16)
        skip(r, form == DATA16 ? 16 : form == DATA2 ? 2 : 1);
    else
        r->bad = true;
    return NULL;
}

/* Adds a file and returns true. Only the part of the name after the last slash is kept. */
static bool add_file(gfx9_lines *l, const char *name) {
    const char *slash = strrchr(name, '/');
    char **more = realloc(l->files, (l->file_count + 1) * sizeof *more);
    if (!more) return false;
    l->files = more;
    l->files[l->file_count] = strdup(slash ? slash + 1 : name);
    return l->files[l->file_count] && ++l->file_count;
}

/* Reads the table of folders or the table of files from the header of a DWARF 5 line table. */
static void read_names(reader *r, const gfx9_debug *d, gfx9_lines *l, bool files) {
    enum { PATH = 1 };
    uint64_t kinds[8] = {0}, forms[8] = {0};
    const uint64_t fields = fixed(r, 1);
    if (fields > 8) r->bad = true;
    for (uint64_t k = 0; k < fields && !r->bad; k++)
        kinds[k] = leb(r, false), forms[k] = leb(r, false);
    uint64_t count = leb(r, false);
    for (; count && fields && !r->bad; count--) {
        const char *name = "";
        for (uint64_t k = 0; k < fields; k++) {
            const char *text = form_value(r, forms[k], d);
            if (kinds[k] == PATH && text) name = text;
        }
        if (files && !r->bad && !add_file(l, name)) r->bad = true;
    }
}

/* Reads the tables of DWARF 4, which count files from 1 on. */
static void read_old_names(reader *r, gfx9_lines *l) {
    while (!r->bad && *string(r)) {
    }
    if (!add_file(l, "")) r->bad = true;
    for (const char *name; !r->bad && *(name = string(r));) {
        for (int k = 0; k < 3; k++)
            leb(r, false);
        if (!r->bad && !add_file(l, name)) r->bad = true;
    }
}

static void add_row(gfx9_lines *l, const line_row *row, reader *r) {
    if (l->count == l->room) {
        const size_t room = l->room ? 2 * l->room : 256;
        line_row *more = realloc(l->rows, room * sizeof *more);
        if (!more) {
            r->bad = true;
            return;
        }
        l->rows = more, l->room = room;
    }
    l->rows[l->count++] = *row;
}

/* Describes the opcodes of a DWARF line program, which produces the table of source lines.
 * `lengths` counts the operands of standard opcodes. */
typedef struct {
    uint8_t step, range, first;
    int8_t base;
    const uint8_t *lengths;
    uint32_t files; /* `files` is the number of this program's first file among all files. */
} program;

static void run_extended(reader *r, gfx9_lines *l, const program *p, line_row *row) {
    enum { END = 1, SET_ADDRESS = 2 };
    const uint64_t size = leb(r, false);
    const uint8_t *next = r->at;
    const uint64_t what = size ? fixed(r, 1) : 0;
    if (what == SET_ADDRESS && size == 9) row->address = fixed(r, 8);
    if (what == END) {
        row->line = 0;
        add_row(l, row, r);
        *row = (line_row){0, p->files + 1, 1};
    }
    r->at = next;
    skip(r, size);
}

static void run_standard(reader *r, gfx9_lines *l, const program *p, uint32_t what, line_row *row) {
    enum { COPY = 1, ADVANCE_PC, ADVANCE_LINE, SET_FILE, CONST_ADD = 8, FIXED_ADD = 9 };
    if (what == COPY)
        add_row(l, row, r);
    else if (what == ADVANCE_PC)
        row->address += p->step * leb(r, false);
    else if (what == ADVANCE_LINE)
        row->line += (uint32_t)leb(r, true);
    else if (what == SET_FILE)
        row->file = p->files + (uint32_t)leb(r, false);
    else if (what == CONST_ADD)
        row->address += (uint64_t)p->step * ((255u - p->first) / p->range);
    else if (what == FIXED_ADD)
        row->address += fixed(r, 2);
    else
        for (uint8_t k = p->lengths[what - 1]; k && !r->bad; k--)
            leb(r, false);
}

static void run_program(reader *r, gfx9_lines *l, const program *p) {
    line_row row = {0, p->files + 1, 1};
    while (r->at < r->end && !r->bad) {
        const uint32_t what = (uint32_t)fixed(r, 1);
        if (what == 0) {
            run_extended(r, l, p, &row);
        } else if (what < p->first) {
            run_standard(r, l, p, what, &row);
        } else {
            row.address += (uint64_t)p->step * ((what - p->first) / p->range);
            row.line += (uint32_t)(p->base + (int32_t)((what - p->first) % p->range));
            add_row(l, &row, r);
        }
    }
}

/* Reads the header of the line table of one DWARF compilation unit and runs its line program. */
static void read_unit(reader *r, const gfx9_debug *d, gfx9_lines *l) {
    const uint64_t version = fixed(r, 2);
    if (version != 4 && version != 5) return;
    if (version == 5) skip(r, 2); /* Skips the sizes of an address and of a segment selector. */
    const uint64_t size = fixed(r, 4);
    reader head = *r;
    skip(r, size);
    program p = {.step = (uint8_t)fixed(&head, 1), .files = l->file_count};
    /* Skips two fields of the header, maximum_operations_per_instruction and default_is_stmt. */
    skip(&head, 2);
    p.base = (int8_t)fixed(&head, 1);
    p.range = (uint8_t)fixed(&head, 1), p.first = (uint8_t)fixed(&head, 1);
    p.lengths = head.at;
    skip(&head, p.first ? p.first - 1u : 0);
    if (head.bad || r->bad || !p.range || !p.first) return;
    if (version == 5)
        read_names(&head, d, l, false), read_names(&head, d, l, true);
    else
        read_old_names(&head, l);
    if (!head.bad) run_program(r, l, &p);
}

static int by_address(const void *a, const void *b) {
    const line_row *x = a, *y = b;
    if (x->address != y->address) return x->address < y->address ? -1 : 1;
    /* If two entries have the same address, the end of a sequence is sorted before the start of the
     * next sequence. */
    return (x->line != 0) - (y->line != 0);
}

gfx9_lines *gfx9_lines_read(const gfx9_debug *d) {
    gfx9_lines *l = calloc(1, sizeof *l);
    if (!d->line_size) return l;
    reader all = {d->line, d->line + d->line_size, false};
    while (l && all.at < all.end && !all.bad) {
        const uint64_t size = fixed(&all, 4);
        reader unit = {all.at, all.at, false};
        skip(&all, size);
        unit.end = all.at;
        read_unit(&unit, d, l);
    }
    if (l && l->count) qsort(l->rows, l->count, sizeof *l->rows, by_address);
    return l;
}

void gfx9_lines_free(gfx9_lines *l) {
    for (uint32_t k = 0; l && k < l->file_count; k++)
        free(l->files[k]);
    if (l) free(l->files), free(l->rows);
    free(l);
}

bool gfx9_line_of(const gfx9_lines *l, uint64_t address, char *to, size_t room) {
    size_t low = 0, high = l ? l->count : 0;
    while (low < high) {
        const size_t middle = (low + high) / 2;
        if (l->rows[middle].address <= address)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == 0 || l->rows[low - 1].line == 0 || l->rows[low - 1].file >= l->file_count)
        return false;
    const line_row *row = &l->rows[low - 1];
    snprintf(to, room, "%.40s:%u", l->files[row->file], row->line);
    return true;
}
