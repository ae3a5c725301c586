#include "cuda/host/clusters.h"

/* counts[b] is the number of clusters of b thread blocks that run at once on a GPU of the given
 * compute capability or a later one. counts[1] is the number of SMs. The host divides K by these
 * counts, so they decide the order of additions. They are constants and not values of the driver,
 * because the driver may give different counts on two GPUs of the same model. These GPUs would then
 * compute results with different bits.
 *
 * H200 (9.0): cuOccupancyMaxActiveClusters returned these counts.
 *
 * B200 and B300 (10.0): the counts for 2, 4 and 8 thread blocks were published. Those for 3, 5, 6
 * and 7 were computed from the published number of SMs that take part in clusters.
 * docs/notes/blackwell.md ("Clusters that run at once") names the sources. */
static const struct {
    int capability;
    uint8_t counts[9];
} gpus[] = {
    {100, {[1] = 148, [2] = 74, [3] = 45, [4] = 33, [5] = 25, [6] = 22, [7] = 15, [8] = 15}},
    {0, {[1] = 132, [2] = 66, [3] = 39, [4] = 30, [5] = 22, [6] = 17, [7] = 15, [8] = 15}},
};

uint32_t bsmm_cuda_clusters_at_once(const bsmm_cuda_device *device, uint32_t blocks) {
    size_t i = 0;
    while (device->capability < gpus[i].capability)
        i++;
    const uint32_t clusters =
        gpus[i].counts[blocks] * (uint32_t)device->multiprocessors / gpus[i].counts[1];
    return clusters ? clusters : 1;
}
