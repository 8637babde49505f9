// out = softmax(q k^T / sqrt(DEPTH)) v, [heads, n, DEPTH]; one query a thread, tiles of keys in shared memory.
// FLOPs: 4 heads n^2 DEPTH. Bytes: 16 heads n DEPTH. The sum and the maximum are kept as the keys go by.
#define QUERIES 64
#define KEYS 32

extern "C" __global__ void __launch_bounds__(QUERIES)
    attention(const float *__restrict__ q, const float *__restrict__ k, const float *__restrict__ v,
              float *__restrict__ out, unsigned heads, unsigned n) {
    __shared__ __align__(16) float key[KEYS][DEPTH];
    __shared__ __align__(16) float value[KEYS][DEPTH];
    unsigned t = threadIdx.x, row = blockIdx.x * QUERIES + t;
    size_t head = (size_t)blockIdx.y * n;
    float query[DEPTH], sum[DEPTH];
#pragma unroll
    for (int d = 0; d < DEPTH; d++) {
        query[d] = row < n ? q[(head + row) * DEPTH + d] * rsqrtf((float)DEPTH) : 0.0f;
        sum[d] = 0.0f;
    }
    float most = -__int_as_float(0x7f800000), total = 0.0f;
    unsigned last = CAUSAL ? min(n, blockIdx.x * QUERIES + QUERIES) : n;
    for (unsigned at = 0; at < last; at += KEYS) {
        for (unsigned j = t; j < KEYS * DEPTH; j += QUERIES) {
            bool there = at + j / DEPTH < n;
            key[j / DEPTH][j % DEPTH] = there ? k[(head + at) * DEPTH + j] : 0.0f;
            value[j / DEPTH][j % DEPTH] = there ? v[(head + at) * DEPTH + j] : 0.0f;
        }
        __syncthreads();
        unsigned seen = min((unsigned)KEYS, last - at);
        for (unsigned j = 0; j < seen; j++) {
            if (CAUSAL && at + j > row) break;
            float score = 0.0f;
#pragma unroll
            for (int d = 0; d < DEPTH; d++) score += query[d] * key[j][d];
            float above = fmaxf(most, score);
            float keep = expf(most - above), weight = expf(score - above);
            total = total * keep + weight;
#pragma unroll
            for (int d = 0; d < DEPTH; d++) sum[d] = sum[d] * keep + weight * value[j][d];
            most = above;
        }
        __syncthreads();
    }
    if (row < n)
#pragma unroll
        for (int d = 0; d < DEPTH; d++) out[(head + row) * DEPTH + d] = sum[d] / total;
}
