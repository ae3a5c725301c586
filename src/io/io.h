/* The io room: mapped files, the tensors in them, and the weights that are recognised among the
 * tensors. */
#ifndef BSMM_IO_H
#define BSMM_IO_H

#include "format/format.h"

/* The size limit of a header, the same as in the reference implementation of safetensors. */
#define BSMM_HEADER_LIMIT 100000000u

/* ---- memory that lives as long as a file or a writer (arena.c) ---- */

typedef struct bsmm_arena {
    struct bsmm_arena_chunk *head;
} bsmm_arena;
/* returns zeroed memory aligned to 16 bytes, or NULL */
void *bsmm_arena_take(bsmm_arena *arena, size_t bytes);
/* Returns a copy, or NULL if there is no memory. */
char *bsmm_arena_text(bsmm_arena *arena, const char *text, size_t length);
char *bsmm_arena_join(bsmm_arena *arena, const char *a, size_t a_length, const char *b);
void bsmm_arena_free(bsmm_arena *arena);

/* Fails with MEMORY and the message "out of memory". */
bsmm_status bsmm_fail_memory(void);

/* Grows the array *items (of item_bytes each) until it has room for count + 1 entries. */
bsmm_status bsmm_grow(void **items, uint64_t count, uint64_t *room, size_t item_bytes);

/* ---- the operating system (map.c) ---- */

typedef struct bsmm_map {
    const char *path; /* the caller's path, which is not copied */
    const uint8_t *data;
    size_t bytes;
} bsmm_map;
bsmm_status bsmm_map_open(const char *path, bsmm_map *map); /* maps a regular file, read-only */
void bsmm_map_close(bsmm_map *map);
/* Releases the pages of the mapping that were read. They are loaded again when they are read
 * again. */
void bsmm_map_release(const bsmm_map *map);

/* Fails with IO and the message "path: cannot <verb>: <the system's reason for `error`>". */
bsmm_status bsmm_fail_system(const char *path, const char *verb, int error);

/* These functions load little-endian values from any address. */
uint32_t bsmm_load_u32(const uint8_t *from);
uint64_t bsmm_load_u64(const uint8_t *from);

/* ---- types of stored tensors (dtype.c) ---- */

typedef struct bsmm_dtype {
    const char *name; /* name of the type as safetensors spells it */
    uint32_t bits;
    uint32_t elem;   /* bsmm_elem, E8M0 included; NONE: it is no float of this library */
    const char *npy; /* name as numpy spells it; NULL: numpy has no such type */
} bsmm_dtype;
/* These functions find rows of the table of types. The rows are in the order of the reference
 * writer of safetensors. */
const bsmm_dtype *bsmm_dtype_at(size_t index); /* returns NULL if index is past the last type */
const bsmm_dtype *bsmm_dtype_find(const char *name); /* returns NULL if no type has this name */
/* Returns NULL if no stored type has this element format. */
const bsmm_dtype *bsmm_dtype_of_elem(uint32_t elem);
/* Returns NULL if no stored type has this scale format. */
const bsmm_dtype *bsmm_dtype_of_scale(uint32_t scale);

/* Checks ndim (at most BSMM_MAX_DIMS) and the shape, and computes the number of elements and their
 * bytes. A failure returns `status`; `what` names the tensor in messages. */
bsmm_status bsmm_shape_bytes(bsmm_status status, const char *what, const bsmm_dtype *dtype,
                             uint32_t ndim, const int64_t *shape, uint64_t *bytes);

/* Writes a shape as text, such as "[2, 3]", shortened to fit. */
void bsmm_shape_text(uint32_t ndim, const int64_t *shape, char *text, size_t size);

/* ---- text ---- */

bool bsmm_text_is_utf8(const char *text, size_t length); /* the text must also contain no NUL */
bool bsmm_text_ends(const char *text, const char *suffix);

/* ---- an open file (file.c) ---- */

/* An entry of a list that is sorted by name: the name and the index of what it names. */
typedef struct bsmm_name {
    const char *name;
    uint64_t index;
} bsmm_name;
/* Entries with equal names are sorted by index. */
bsmm_status bsmm_names_sort(bsmm_name *names, uint64_t count);
/* Finds the first entry that does not come before the given name. The name is the first `base`
 * characters of `name` followed by `suffix`. */
uint64_t bsmm_names_find(const bsmm_name *names, uint64_t count, const char *name, size_t base,
                         const char *suffix);
/* Tells whether `candidate` is the first `base` characters of `name` followed by `suffix`. */
bool bsmm_name_is(const char *candidate, const char *name, size_t base, const char *suffix);

/* A metadata value at its place in the file. Its type is GGUF's number for it (value.c). */
typedef struct bsmm_stored_value {
    const uint8_t *at; /* address of a number, of a string's bytes, or of an array's first item */
    uint64_t count;    /* bytes of a string, items of an array, else 1 */
    uint32_t type, item_type;
} bsmm_stored_value;

enum { BSMM_GGUF_STRING = 8, BSMM_GGUF_ARRAY = 9 };

/* Returns the size of a number of a GGUF type, or 0 for strings, arrays and unknown types. */
uint32_t bsmm_gguf_number_bytes(uint32_t type);

typedef struct bsmm_pair {
    const char *key, *value; /* value is NULL if it is no text, or a text with NUL */
    bsmm_stored_value stored;
} bsmm_pair;

struct bsmm_record; /* family.h defines it */

struct bsmm_file {
    const char *kind;
    const char *folder; /* folder of the file; NULL for a file from memory */
    bool merged;        /* several headers: of equal metadata keys the first is kept */
    bsmm_arena arena;
    bsmm_map *maps;
    uint64_t map_count, map_room;
    bsmm_tensor *tensors; /* sorted by their bytes; empty tensors in the header's order */
    uint64_t tensor_count, tensor_room;
    bsmm_name *by_name;  /* sorted names of the tensors */
    bsmm_pair *metadata; /* value NULL: the value of the key is no text */
    uint64_t metadata_count, metadata_room;
    struct bsmm_record *weights; /* weights in the order of their element tensors */
    uint64_t weight_count, weight_room;
    bsmm_name *weights_by_name;
};

void bsmm_file_clear(bsmm_file *file); /* frees everything that the file holds */
bsmm_status bsmm_file_map(bsmm_file *file, const char *path,
                          bsmm_map *map); /* maps the file and adds the mapping to file->maps */
/* The tensor's name is not copied. */
bsmm_status bsmm_file_add_tensor(bsmm_file *file, const bsmm_tensor *tensor);
/* Sorts the tensors by their bytes. Tensors with equal begin and end keep their order. */
bsmm_status bsmm_file_order(bsmm_file *file);
/* Adds a metadata entry. The key, and a text that is UTF-8 without NUL, are copied. Other values
 * are not copied and must live as long as the file. */
bsmm_status bsmm_file_add_metadata(bsmm_file *file, const char *key, size_t key_length,
                                   const bsmm_stored_value *value);
bsmm_status bsmm_file_add_text(bsmm_file *file, const char *key, const char *text, size_t length);
/* Returns NULL if the key is absent. */
const bsmm_pair *bsmm_file_pair(const bsmm_file *file, const char *key);
/* Sorts the names of tensors and the metadata keys, and refuses duplicates. */
bsmm_status bsmm_file_index(bsmm_file *file);
/* These functions find the tensor of a name. bsmm_file_sibling takes the first `base` characters of
 * `name` followed by `suffix`. They return BSMM_NO_TENSOR if there is none. */
uint64_t bsmm_file_lookup(const bsmm_file *file, const char *name);
uint64_t bsmm_file_sibling(const bsmm_file *file, const char *name, size_t base,
                           const char *suffix);

/* ---- file formats: each function adds the tensors and metadata of a range of memory ---- */

bsmm_status bsmm_safetensors_parse(const uint8_t *data, size_t bytes, bsmm_file *file);
bsmm_status bsmm_gguf_parse(const uint8_t *data, size_t bytes, bsmm_file *file);
bsmm_status bsmm_npy_parse(const uint8_t *data, size_t bytes, const char *name, bsmm_file *file);

/* Writes the header of a .npy file for a tensor into `text`. Returns its size; `text` may be
 * NULL. */
size_t bsmm_npy_header(const bsmm_dtype *dtype, uint32_t ndim, const int64_t *shape, char *text);

/* These functions open a sharded model from the text of its index file. The shards are mapped from
 * file->folder. */
bool bsmm_shards_detect(const uint8_t *data, size_t bytes);
bsmm_status bsmm_shards_open(const uint8_t *data, size_t bytes, bsmm_file *file);

/* Opens a file that lies in memory. Its content decides the kind. The memory must outlive the
 * bsmm_file. A sharded model needs bsmm_file_open instead. */
bsmm_status bsmm_file_from_memory(const uint8_t *data, size_t bytes, bsmm_file **file);

#endif
