// Fills BYTES of shared memory, given at launch; each thread sums words that others wrote.
extern __shared__ unsigned held[];

extern "C" __global__ void shared_probe(unsigned *out, unsigned words, unsigned rounds) {
    unsigned t = threadIdx.x, threads = blockDim.x;
    for (unsigned i = t; i < words; i += threads) held[i] = i;
    __syncthreads();
    unsigned sum = 0;
    for (unsigned r = 0; r < rounds; r++) sum += held[(t + 1 + r * threads) % words];
    out[t] = sum;
}
