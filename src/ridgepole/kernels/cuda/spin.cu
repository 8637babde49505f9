// x = x * 0.5 + 1, `rounds` times. FLOPs: 2 threads rounds.
extern "C" __global__ void spin(float *__restrict__ out, unsigned threads, unsigned rounds) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    float x = (float)(i % STARTS);
    for (unsigned r = 0; r < rounds; r++) x = x * 0.5f + 1.0f;
    if (i < threads) out[i] = x;
}
