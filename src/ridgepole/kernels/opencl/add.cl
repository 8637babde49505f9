// out = a + b. FLOPs: n. Bytes: 12 n.
// Wide accesses go through float4 pointers, for buffers are aligned: PoCL calls a function for each vload4.
#define BLOCK 256

kernel void add(global const float *a, global const float *b, global float *out, uint n) {
    uint i = get_global_id(0);
    if (i < n) out[i] = a[i] + b[i];
}

kernel void add_wide(global const float *a, global const float *b, global float *out, uint n) {
    uint i = get_global_id(0);
    if (i < n / 4) {
        ((global float4 *)out)[i] = ((global const float4 *)a)[i] + ((global const float4 *)b)[i];
    } else {
        for (i *= 4; i < n; i++) out[i] = a[i] + b[i];
    }
}

// A block adds 4 runs of 4 * BLOCK elements; each thread has its loads of all four in flight before the first add.
kernel void add_stream(global const float *a, global const float *b, global float *out, uint n) {
    uint start = get_group_id(0) * (4 * BLOCK) + get_local_id(0);
    if (get_group_id(0) < n / (16 * BLOCK)) {
        float4 x[4], y[4];
        for (uint j = 0; j < 4; j++) {
            x[j] = ((global const float4 *)a)[start + j * BLOCK];
            y[j] = ((global const float4 *)b)[start + j * BLOCK];
        }
        for (uint j = 0; j < 4; j++) ((global float4 *)out)[start + j * BLOCK] = x[j] + y[j];
    } else {
        for (uint j = 0; j < 4; j++)
            for (uint e = 0; e < 4; e++) {
                uint i = (start + j * BLOCK) * 4 + e;
                if (i < n) out[i] = a[i] + b[i];
            }
    }
}
