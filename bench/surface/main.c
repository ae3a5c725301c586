/* Times the cells (GEMMs) of standard input and prints a JSON line for each (cells.c).
 *
 *     bsmm_surface DEVICE < cells */
#include "surface.h"

int main(int argc, char **argv) {
    if (argc == 2) return surface_run_all(argv[1], stdin);
    fprintf(stderr, "usage: bsmm_surface DEVICE < cells\n");
    return 2;
}
