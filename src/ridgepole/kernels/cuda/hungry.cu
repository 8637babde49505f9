// Keeps LIVE values of a thread in registers at once. Bytes: 4 n + 4 n / LIVE.
extern "C" __global__ void hungry(const float *__restrict__ a, float *__restrict__ out, unsigned n) {
    unsigned t = blockIdx.x * blockDim.x + threadIdx.x, apart = n / LIVE;
    if (t >= apart) return;
    float value[LIVE];
#pragma unroll
    for (int j = 0; j < LIVE; j++) value[j] = a[t + j * apart];
#pragma unroll
    for (int r = 0; r < ROUNDS; r++) {
        float mean = 0.0f;
#pragma unroll
        for (int j = 0; j < LIVE; j++) mean += value[j] * (1.0f / LIVE);
#pragma unroll
        for (int j = 0; j < LIVE; j++) value[j] = value[j] * 0.5f + mean * 0.5f;
    }
    float sum = 0.0f;
#pragma unroll
    for (int j = 0; j < LIVE; j++) sum += value[j];
    out[t] = sum;
}
