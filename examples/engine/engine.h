/* Declares a small inference engine. It loads the feed-forward weights of a model, packs them once
 * and then multiplies batches of 1 to ENGINE_MOST_ROWS tokens by them. docs/engine.md explains the
 * program. Each layer computes h = h + (h x up^T) x down^T. An engine for real models also runs
 * its own kernels for norms, attention and activations. */
#ifndef ENGINE_H
#define ENGINE_H

#include <bsmm.h>
#include <stdbool.h>

enum {
    ENGINE_MOST_ROWS = 512, /* ENGINE_MOST_ROWS is the largest number of tokens in a batch. */
    /* ENGINE_CLASSES is the number of classes of batches. Batches of class c are padded to 2^c
     * rows, i.e. to 1, 2, 4, ... or 512 rows. */
    ENGINE_CLASSES = 10,
    ENGINE_MOST_LAYERS = 256 /* ENGINE_MOST_LAYERS is the largest number of layers of a model. */
};

/* Names the two products of a layer. */
typedef enum engine_kind { ENGINE_UP = 0, ENGINE_DOWN = 1, ENGINE_KINDS = 2 } engine_kind;

/* Holds one weight, quantized in host memory and packed in device memory. */
typedef struct engine_weight {
    bsmm_matrix host;
    void *packed;
} engine_weight;

/* Describes a product of a layer. All layers have the same shapes, so one set of plans serves
 * every layer. */
typedef struct engine_product {
    /* `a`, `b` and `d` describe the matrices of a product with ENGINE_MOST_ROWS rows. The
     * descriptions have no memory. */
    bsmm_matrix a, b, d;
    /* `plans` has one plan for each class of batches. If a plan takes any number of rows, only
       plans[0] exists. */
    bsmm_plan *plans[ENGINE_CLASSES];
    uint64_t packed_bytes;
    /* `bound` is the largest error bound of the kernels that a plan may choose (bsmm_explain). */
    double bound;
} engine_product;

typedef struct engine_graphs engine_graphs;

typedef struct engine {
    const char *device;
    int layers;
    engine_weight weights[ENGINE_MOST_LAYERS][ENGINE_KINDS];
    engine_product products[ENGINE_KINDS];
    /* If `any_rows` is true, one plan takes any number of rows. Otherwise there is one plan for
     * each class of batches. */
    bool any_rows;
    void *hidden;    /* `hidden` points to ENGINE_MOST_ROWS rows of h in bf16 on the device. */
    void *inner;     /* `inner` points to as many rows of h x up^T in bf16 on the device. */
    void *workspace; /* `workspace` points to the workspace of the largest plan. */
    uint64_t workspace_bytes;
    void *stream; /* `stream` points to the stream of a GPU, or NULL on a CPU. */
    /* `graphs` points to the CUDA graphs. It is NULL on devices without CUDA. */
    engine_graphs *graphs;
} engine;

/* Every function below that returns bool has printed an error message if it returns false. */

/* Prints the library's message if `status` is a failure. Returns true if `status` is BSMM_OK. */
bool engine_ok(bsmm_status status, const char *what);

/* Reads all layers of a file. The function quantizes unscaled weights to `format`. It does not
 * change weights that the file stores quantized. */
bool engine_load(engine *e, const char *path, const char *format);
/* Packs the weights in the device's memory. The plans must exist. */
bool engine_pack(engine *e);
void engine_free_weights(engine *e);

/* Makes the plans, the buffers and, on an NVIDIA GPU, the stream and the graphs. */
bool engine_start(engine *e);
void engine_stop(engine *e);
/* Returns the number of rows to which a batch of `rows` rows is padded. All products of the batch
 * have this number of rows. */
int64_t engine_class_rows(const engine *e, int64_t rows);
/* Queues the products of all layers for a batch. The function allocates nothing, so a graph can
 * capture it. */
bool engine_queue(const engine *e, int64_t rows);
/* Computes `rows` rows of hidden values in bf16. The results replace the input. */
bool engine_serve(const engine *e, uint16_t *hidden, int64_t rows);

/* Captures one CUDA graph for each class of batches. Class i is for batches of up to 2^i rows. On
 * devices other than NVIDIA GPUs the function does nothing. */
bool engine_capture(engine *e);
/* Launches the CUDA graph for batches of class `index`, i.e. of up to 2^index rows. */
bool engine_launch(const engine *e, int index);
void engine_free_graphs(engine *e);

/* Computes the row `given` in double and compares it with `served`, the engine's result for this
 * row. Returns the largest error as a multiple of its bound, or a negative number if there is no
 * memory. */
double engine_check(const engine *e, const uint16_t *given, const uint16_t *served);

#endif
