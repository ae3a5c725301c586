/* Declares what the files of src/io share: mapped files, the tensors in them, and the weights that
 * are recognized among the tensors. */
#ifndef BSMM_IO_H
#define BSMM_IO_H

#include "format/format.h"

/* BSMM_HEADER_LIMIT is the largest header of a safetensors file in bytes. The reference
 * implementation of safetensors has the same limit. */
#define BSMM_HEADER_LIMIT 100000000u

/* The functions from here on are in arena.c. They allocate memory that is freed together with a
 * file or a writer. */

typedef struct bsmm_arena {
    struct bsmm_arena_chunk *head;
} bsmm_arena;
/* Returns zeroed memory that is aligned to 16 bytes, or NULL if there is no memory. */
void *bsmm_arena_take(bsmm_arena *arena, size_t bytes);
/* bsmm_arena_text copies a text. bsmm_arena_join joins the first a_length bytes of `a` and all of
 * `b`. Both return NULL if there is no memory. */
char *bsmm_arena_text(bsmm_arena *arena, const char *text, size_t length);
char *bsmm_arena_join(bsmm_arena *arena, const char *a, size_t a_length, const char *b);
void bsmm_arena_free(bsmm_arena *arena);

/* Fails with MEMORY and the message "out of memory". */
bsmm_status bsmm_fail_memory(void);

/* Grows the array *items, whose entries have item_bytes bytes, until it has room for count + 1
 * entries. */
bsmm_status bsmm_grow(void **items, uint64_t count, uint64_t *room, size_t item_bytes);

/* The functions from here on are in map.c. They call the operating system. */

typedef struct bsmm_map {
    const char *path; /* `path` is the caller's path, which is not copied. */
    const uint8_t *data;
    size_t bytes;
} bsmm_map;
bsmm_status bsmm_map_open(const char *path, bsmm_map *map); /* Maps a regular file for reading. */
void bsmm_map_close(bsmm_map *map);
/* Tells the operating system that the pages of the mapping that were read so far are not needed
 * soon, so that it may free their memory. A later access loads them from the file again. */
void bsmm_map_release(const bsmm_map *map);

/* Fails with IO and the message "path: cannot <verb>: <the system's reason for `error`>". */
bsmm_status bsmm_fail_system(const char *path, const char *verb, int error);

/* These functions load little-endian numbers from any address, aligned or not. */
uint32_t bsmm_load_u32(const uint8_t *from);
uint64_t bsmm_load_u64(const uint8_t *from);

/* The functions from here on are in dtype.c. They describe the types of stored tensors. */

typedef struct bsmm_dtype {
    const char *name; /* `name` is the name of the type as safetensors spells it. */
    uint32_t bits;
    /* `elem` is a value of the enum bsmm_elem, which may be E8M0. NONE means that the library has
     * no such element format. */
    uint32_t elem;
    /* `npy` is the name of the type as numpy spells it. NULL means that numpy has no such type. */
    const char *npy;
} bsmm_dtype;
/* These functions find entries of the table of stored types. The entries have the order in which
 * the reference writer of safetensors sorts tensors. bsmm_dtype_at returns NULL past the last
 * type. */
const bsmm_dtype *bsmm_dtype_at(size_t index);
/* bsmm_dtype_find returns NULL if no type has this name. */
const bsmm_dtype *bsmm_dtype_find(const char *name);
/* Returns the type in which elements of this format are stored, or NULL if there is none. */
const bsmm_dtype *bsmm_dtype_of_elem(uint32_t elem);
/* Returns the type in which scales of this format are stored, or NULL if there is none. */
const bsmm_dtype *bsmm_dtype_of_scale(uint32_t scale);

/* Checks that ndim is at most BSMM_MAX_DIMS and that the shape is valid, and computes the size of
 * the tensor in bytes. A failure returns the code `status`. `what` names the tensor in messages. */
bsmm_status bsmm_shape_bytes(bsmm_status status, const char *what, const bsmm_dtype *dtype,
                             uint32_t ndim, const int64_t *shape, uint64_t *bytes);

/* Writes a shape as text, such as "[2, 3]". If the text needs more than `size` bytes, its end is
 * left out. */
void bsmm_shape_text(uint32_t ndim, const int64_t *shape, char *text, size_t size);

/* The functions from here on check text. */

/* Tells whether a text is valid UTF-8 without a NUL. */
bool bsmm_text_is_utf8(const char *text, size_t length);
bool bsmm_text_ends(const char *text, const char *suffix);

/* The functions from here on are in file.c. They read an open file. */

/* `bsmm_name` is an entry of a list that is sorted by name. `index` is the position of the named
 * tensor or weight in its own array. */
typedef struct bsmm_name {
    const char *name;
    uint64_t index;
} bsmm_name;
/* Sorts the entries by name, and entries with equal names by index. */
bsmm_status bsmm_names_sort(bsmm_name *names, uint64_t count);
/* Finds the first entry that does not come before a searched name in the sorted list. The searched
 * name is the first `base` characters of `name`, followed by `suffix`. */
uint64_t bsmm_names_find(const bsmm_name *names, uint64_t count, const char *name, size_t base,
                         const char *suffix);
/* Tells whether `candidate` equals the first `base` characters of `name`, followed by `suffix`. */
bool bsmm_name_is(const char *candidate, const char *name, size_t base, const char *suffix);

/* This struct is a metadata value as it lies in the file. `type` is GGUF's number of the type
 * (value.c). */
typedef struct bsmm_stored_value {
    /* `at` is the address of a number, of a string's bytes, or of an array's first item. */
    const uint8_t *at;
    /* `count` is the number of bytes of a string, or of items of an array. It is 1 for a number. */
    uint64_t count;
    uint32_t type, item_type;
} bsmm_stored_value;

enum { BSMM_GGUF_STRING = 8, BSMM_GGUF_ARRAY = 9 };

/* Returns the stored value, or `otherwise` if it is no whole number of at least 0. */
uint64_t bsmm_gguf_whole_number(const bsmm_stored_value *stored, uint64_t otherwise);
/* Returns the size in bytes of a number of a GGUF type, or 0 for strings, arrays and unknown
 * types. */
uint32_t bsmm_gguf_number_bytes(uint32_t type);

typedef struct bsmm_pair {
    const char *key, *value; /* `value` is NULL if the stored value is not a string or has a NUL. */
    bsmm_stored_value stored;
    uint64_t place; /* `place` is the number of the entry in the order of the file. */
} bsmm_pair;

struct bsmm_record; /* The struct is defined in family.h. */

struct bsmm_file {
    const char *kind;
    /* `folder` is the path of the folder of the file. It is NULL if the file was opened from
     * memory. */
    const char *folder;
    /* `merged` is true if the metadata comes from several headers, so that keys may repeat. */
    bool merged;
    bsmm_arena arena;
    bsmm_map *maps;
    uint64_t map_count, map_room;
    /* `tensors` holds the tensors, sorted by the addresses of their bytes. Empty tensors keep the
     * order of the header. */
    bsmm_tensor *tensors;
    uint64_t tensor_count, tensor_room;
    bsmm_name *by_name;  /* `by_name` lists the names of the tensors in sorted order. */
    bsmm_pair *metadata; /* `metadata` is sorted by key after bsmm_file_index. */
    uint64_t metadata_count, metadata_room;
    struct bsmm_record *weights; /* The weights are in the order of their element tensors. */
    uint64_t weight_count, weight_room;
    bsmm_name *weights_by_name;
};

void bsmm_file_clear(bsmm_file *file); /* Frees all memory and mappings of the file. */
/* Maps the file at `path` into memory. Stores the mapping in *map and appends it to file->maps. */
bsmm_status bsmm_file_map(bsmm_file *file, const char *path, bsmm_map *map);
/* Adds a tensor to the file's list. The tensor's name is not copied. */
bsmm_status bsmm_file_add_tensor(bsmm_file *file, const bsmm_tensor *tensor);
/* Sorts the tensors by the addresses of their bytes. Tensors with the same bytes keep their
 * order. */
bsmm_status bsmm_file_order(bsmm_file *file);
/* Adds a metadata entry. The key is copied, and so is a string value that is UTF-8 without a NUL.
 * Other values are not copied and must live as long as the file. */
bsmm_status bsmm_file_add_metadata(bsmm_file *file, const char *key, size_t key_length,
                                   const bsmm_stored_value *value);
bsmm_status bsmm_file_add_text(bsmm_file *file, const char *key, const char *text, size_t length);
/* These functions add a tensor, or all metadata, of another file of the same model. They copy names
 * and keys, so that the other file may be cleared. They do not copy the mapped data and the text
 * `dtype` of the tensor, which must stay valid. */
bsmm_status bsmm_file_take_tensor(bsmm_file *file, const bsmm_tensor *from);
bsmm_status bsmm_file_take_metadata(bsmm_file *file, const bsmm_file *from);
/* Returns the metadata entry of a key, or NULL if the key is absent. */
const bsmm_pair *bsmm_file_pair(const bsmm_file *file, const char *key);
/* Makes the sorted lists of tensor names and metadata keys. Fails if a name occurs twice. */
bsmm_status bsmm_file_index(bsmm_file *file);
/* These functions return the index of a tensor by its name, or BSMM_NO_TENSOR if there is no such
 * tensor. bsmm_file_sibling looks for the name that consists of the first `base` characters of
 * `name`, followed by `suffix`. */
uint64_t bsmm_file_lookup(const bsmm_file *file, const char *name);
uint64_t bsmm_file_sibling(const bsmm_file *file, const char *name, size_t base,
                           const char *suffix);

/* The functions from here on read one file format each. Each *_parse function adds the tensors and
 * metadata that it finds. */

bsmm_status bsmm_safetensors_parse(const uint8_t *data, size_t bytes, bsmm_file *file);
bsmm_status bsmm_gguf_parse(const uint8_t *data, size_t bytes, bsmm_file *file);
/* The model's first file has been parsed into `file`. Adds the remaining files of a GGUF model to
 * `file`. Does nothing if the model is one file. `path` is the path of the first file, or NULL if
 * the first file was opened from memory. */
bsmm_status bsmm_gguf_open_parts(const char *path, bsmm_file *file);
bsmm_status bsmm_npy_parse(const uint8_t *data, size_t bytes, const char *name, bsmm_file *file);

/* Writes the header of a .npy file for one tensor into `text`, unless `text` is NULL. Returns the
 * size of the header in bytes. */
size_t bsmm_npy_header(const bsmm_dtype *dtype, uint32_t ndim, const int64_t *shape, char *text);

/* bsmm_shards_detect tells whether the bytes are the index file of a sharded model.
 * bsmm_shards_open opens the model from the text of its index; the shards are mapped from
 * file->folder. */
bool bsmm_shards_detect(const uint8_t *data, size_t bytes);
bsmm_status bsmm_shards_open(const uint8_t *data, size_t bytes, bsmm_file *file);

/* Opens a file whose bytes are already in memory. The content decides the kind of file. The memory
 * must live longer than the bsmm_file. A sharded model cannot be opened this way, because its
 * shards are other files. */
bsmm_status bsmm_file_from_memory(const uint8_t *data, size_t bytes, bsmm_file **file);

#endif
