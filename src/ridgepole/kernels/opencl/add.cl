// out = a + b. FLOPs: n. Bytes: 12 n.
#define BLOCK 256

kernel void add(global const float *a, global const float *b, global float *out, uint n) {
    uint i = get_global_id(0);
    if (i < n) out[i] = a[i] + b[i];
}

kernel void add_wide(global const float *a, global const float *b, global float *out, uint n) {
    uint i = get_global_id(0) * 4;
    if (i + 4 <= n) {
        vstore4(vload4(0, a + i) + vload4(0, b + i), 0, out + i);
    } else {
        for (; i < n; i++) out[i] = a[i] + b[i];
    }
}

// A block adds 4 runs of 4 * BLOCK elements; each thread has its loads of all four in flight before the first add.
kernel void add_stream(global const float *a, global const float *b, global float *out, uint n) {
    uint start = get_group_id(0) * (16 * BLOCK) + get_local_id(0) * 4;
    if (get_group_id(0) * (16 * BLOCK) + 16 * BLOCK <= n) {
        float4 x[4], y[4];
        for (uint j = 0; j < 4; j++) {
            x[j] = vload4(0, a + start + j * 4 * BLOCK);
            y[j] = vload4(0, b + start + j * 4 * BLOCK);
        }
        for (uint j = 0; j < 4; j++) vstore4(x[j] + y[j], 0, out + start + j * 4 * BLOCK);
    } else {
        for (uint j = 0; j < 4; j++)
            for (uint e = 0; e < 4; e++) {
                uint i = start + j * 4 * BLOCK + e;
                if (i < n) out[i] = a[i] + b[i];
            }
    }
}
