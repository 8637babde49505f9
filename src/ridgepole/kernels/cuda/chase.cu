// i = next[i], `steps` times, by one thread. No FLOPs; one line a load. out[1]: SM cycles it took.
extern "C" __global__ void chase(const unsigned *next, unsigned *out, unsigned elements, unsigned stride,
                                 unsigned steps) {
    unsigned i = 0;
    long long start = clock64();
    for (unsigned s = 0; s < steps; s++) i = next[i];
    out[0] = i; // before the clock is read, so that the last load is in the time
    out[1] = (unsigned)(clock64() - start);
}

#ifdef ELEMENTS
extern "C" __global__ void chase_shared(const unsigned *next, unsigned *out, unsigned elements, unsigned stride,
                                        unsigned steps) {
    __shared__ unsigned held[ELEMENTS];
    for (unsigned j = 0; j < elements; j++) held[j] = next[j];
    __syncthreads();
    unsigned i = 0;
    long long start = clock64();
    for (unsigned s = 0; s < steps; s++) i = held[i];
    out[0] = i;
    out[1] = (unsigned)(clock64() - start);
}
#endif

#ifdef OFFSET
extern "C" __global__ void chase_registers(const unsigned *seed, unsigned *out, unsigned steps) {
    unsigned i = seed[0];
    long long start = clock64();
    for (unsigned s = 0; s < steps; s++) i = i * i + OFFSET;
    out[0] = i;
    out[1] = (unsigned)(clock64() - start);
}
#endif
