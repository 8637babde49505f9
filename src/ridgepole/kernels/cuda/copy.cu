// out = a. Bytes: 8 n.
#define BLOCK 256

extern "C" __global__ void copy(const float *__restrict__ a, float *__restrict__ out, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = a[i];
}

extern "C" __global__ void copy_wide(const float *__restrict__ a, float *__restrict__ out, unsigned n) {
    unsigned i = (blockIdx.x * blockDim.x + threadIdx.x) * 4;
    if (i + 4 <= n) {
        *(float4 *)(out + i) = *(const float4 *)(a + i);
    } else {
        for (; i < n; i++) out[i] = a[i];
    }
}

// A block copies 4 runs of 4 * BLOCK elements; each thread has its loads of all four in flight before the first store.
// Nothing is read twice, so loads and stores are marked streaming (evict first).
extern "C" __global__ void __launch_bounds__(BLOCK)
    copy_stream(const float *__restrict__ a, float *__restrict__ out, unsigned n) {
    unsigned first = blockIdx.x * (16 * BLOCK), start = first + threadIdx.x * 4;
    if (first + 16 * BLOCK <= n) {
        float4 x[4];
#pragma unroll
        for (int j = 0; j < 4; j++) x[j] = __ldcs((const float4 *)(a + start + j * 4 * BLOCK));
#pragma unroll
        for (int j = 0; j < 4; j++) __stcs((float4 *)(out + start + j * 4 * BLOCK), x[j]);
    } else {
        for (unsigned j = 0; j < 16; j++) {
            unsigned i = start + j / 4 * (4 * BLOCK) + j % 4;
            if (i < n) out[i] = a[i];
        }
    }
}
