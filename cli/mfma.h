/* The picture of an operand of a matrix instruction. */
#ifndef CLI_MFMA_H
#define CLI_MFMA_H

#include "command.h"

typedef struct cli_mfma_values {
    const char *operand, *type;
    int64_t block, cdna;
    bool json, svg;
} cli_mfma_values;

extern const cli_column cli_mfma_places[];

/* Draws one operand of a named instruction; returns an exit status. */
int cli_mfma_draw(const char *name, const cli_mfma_values *options);

#endif
